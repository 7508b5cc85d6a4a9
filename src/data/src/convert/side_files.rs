//! Adds the data of side files to the rows of their inputs.

use crate::ingest::{Ingest, SideFiles, SideReader};
use crate::rows::Block;
use planetree_base::error::{Error, Result};

/// Reads the side files of the current input, such as weights and query sizes.
pub(super) struct CurrentSideFiles {
    all: Vec<SideFiles>,
    names: Vec<String>,
    open: Option<(u32, SideReader)>,
    /// Number of queries so far whose sizes come from a side file.
    query: u64,
    /// Whether the inputs have query ids; `None` until the first row is read.
    named: Option<bool>,
}

impl CurrentSideFiles {
    pub(super) fn new(ingest: &Ingest) -> Self {
        let (all, names) = (ingest.sides().to_vec(), ingest.names());
        CurrentSideFiles { all, names, open: None, query: 0, named: None }
    }

    /// Adds the data of the side files of an input to its next rows.
    pub(super) fn add_to(&mut self, input: u32, block: &mut Block) -> Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != input) {
            self.finish()?;
            let reader = self.all[input as usize].open(&self.names[input as usize])?;
            self.open = Some((input, reader));
        }
        let named = !block.runs.is_empty();
        if block.rows() > 0 && *self.named.get_or_insert(named) != named {
            return Err(Error::place(
                &self.names[input as usize],
                "this input has query sizes in a .query file, but another one has query ids",
                "convert the inputs separately, or add query ids to all of them",
            ));
        }
        match &mut self.open {
            Some((_, reader)) => reader.add_to(block, &mut self.query),
            None => Ok(()),
        }
    }

    /// Checks that the side files of the current input have no more data.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |(_, reader)| reader.finish())
    }
}
