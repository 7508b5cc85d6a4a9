//! Scoring a dataset with a model, in bounded memory.
