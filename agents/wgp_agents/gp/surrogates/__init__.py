"""The surrogates: what B learners believe of the function."""
