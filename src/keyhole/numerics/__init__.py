"""Mathematics with no idea of disclosure."""
