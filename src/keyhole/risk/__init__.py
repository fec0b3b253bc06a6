"""From the law of the unsampled counts to r1, r2, tau1 and tau2."""
