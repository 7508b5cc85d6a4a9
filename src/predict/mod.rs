//! Scoring a dataset with a model, in bounded memory.

mod dense;
mod layout;
mod planes;
mod scorer;
mod walk;

pub use scorer::Scorer;

#[cfg(test)]
mod tests;
