//! Encodes row groups on the thread pool.

use super::{next, thread_ended};
use crate::dataset::{DatasetWriter, EncodedGroup, Layout, RowGroup, encode_group};
use planetree_base::error::{Error, Result};
use rayon::ThreadPool;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Encodes row groups on the thread pool and appends them to the dataset in order.
pub(super) struct GroupEncoder {
    pool: Arc<ThreadPool>,
    layout: Layout,
    pending: VecDeque<Receiver<parquet::errors::Result<EncodedGroup>>>,
    writer: DatasetWriter,
}

impl GroupEncoder {
    /// Maximum number of row groups in the encoder: one group is encoded while the next one is collected.
    const MAX_PENDING: usize = 1;

    pub(super) fn new(pool: Arc<ThreadPool>, layout: Layout, writer: DatasetWriter) -> Self {
        GroupEncoder { pool, layout, pending: VecDeque::new(), writer }
    }

    /// Starts to encode a row group, and writes an earlier one if too many are pending.
    pub(super) fn encode(&mut self, group: RowGroup) -> Result<()> {
        while self.pending.len() >= Self::MAX_PENDING {
            self.write_next()?;
        }
        let (sender, encoded) = sync_channel(1);
        let layout = self.layout.clone();
        self.pool.spawn(move || {
            let _ = sender.send(encode_group(&group, &layout)); // fails if an error has stopped the receiver
        });
        self.pending.push_back(encoded);
        Ok(())
    }

    fn write_next(&mut self) -> Result<()> {
        if let Some(encoded) = self.pending.pop_front() {
            let group = next(&encoded)?.ok_or_else(|| thread_ended("encoding"))?.map_err(|error| {
                Error::bug("convert", format_args!("failed to encode a row group: {error}")).caused_by(error)
            })?;
            tracing::debug!("writing a row group: {} rows, {} queries", group.rows, group.queries);
            self.writer.append(group)?;
        }
        Ok(())
    }

    /// Writes all pending row groups.
    pub(super) fn finish(mut self) -> Result<DatasetWriter> {
        while !self.pending.is_empty() {
            self.write_next()?;
        }
        Ok(self.writer)
    }
}
