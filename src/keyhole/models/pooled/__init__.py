"""One answer from several models: a pool of their laws, weighed by how well each predicts unseen records."""
