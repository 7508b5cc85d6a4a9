//! Ends queries that exceed the memory limit. The engine counts what its sorts, joins and aggregations hold, but not the
//! values of expressions, the rows of tables that CREATE TABLE makes, or all rows of a window. So the memory of the whole
//! process is watched while a query runs.

use super::error::QUERY;
use planetree_base::error::{Error, Result};
use planetree_base::process_memory::resident_bytes;
use planetree_base::size::shown_size;
use std::time::Duration;

/// Time between two looks at the memory. Memory can grow by some tens of megabytes in it.
const INTERVAL: Duration = Duration::from_millis(5);

/// Watches the memory of the process. The default watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryWatch {
    limit: Option<u64>,
}

impl MemoryWatch {
    /// Watches over a limit in bytes.
    pub(crate) fn new(limit: u64) -> Self {
        MemoryWatch { limit: Some(limit) }
    }

    /// Waits for a future. Fails if the limit is exceeded before it completes.
    pub(crate) async fn during<T>(self, work: impl Future<Output = T>) -> Result<T> {
        let Some(limit) = self.limit else { return Ok(work.await) };
        // What is allocated between two looks, and while the process ends, has to fit, too.
        let most = limit - limit / 16;
        let mut work = std::pin::pin!(work);
        loop {
            if resident_bytes().is_some_and(|bytes| bytes > most) {
                return Err(Error::place(
                    QUERY,
                    format_args!(
                        "the memory limit is too small: the query needs more than {}",
                        shown_size(limit)
                    ),
                    "raise --memory-limit, or read fewer rows, columns or long values at a time",
                ));
            }
            tokio::select! {
                output = &mut work => return Ok(output),
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::storage::border;

    #[test]
    fn work_that_exceeds_the_limit_ends() {
        let work = || async { 7 };
        assert_eq!(border::wait(MemoryWatch::default().during(work())).unwrap(), 7);
        assert_eq!(border::wait(MemoryWatch::new(1 << 50).during(work())).unwrap(), 7);
        if cfg!(target_os = "linux") {
            let endless = std::future::pending::<()>();
            let error = border::wait(MemoryWatch::new(1 << 20).during(endless)).unwrap_err();
            assert!(error.to_string().contains("the query needs more than 1.0 MiB"), "{error}");
        }
    }
}
