"""Which real microdata travel with the package, so that estimates can be shown beside a known truth?"""
