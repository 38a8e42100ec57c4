"""scikit-learn's contract: the regressors and transformers that users fit."""
