"""The sequential logit: the joint law of the keys, one multinomial logit per key given the earlier ones."""
