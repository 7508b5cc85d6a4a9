//! How good rankings are ([`evaluate`]), and whether differences between them are significant ([`compare`]).

pub mod compare;
pub mod evaluate;
mod plan;
