"""Log-linear models whose cells deviate from the fixed effects at random (Carota et al. 2015)."""
