//! Notices that a cluster has stopped working on a request. The scheduler keeps a request that no executor can take
//! until one registers, so the loss of the last executor would go unnoticed.

use super::client::PROBE_TIMEOUT;
use datafusion::common::{DataFusionError, Result};
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// Time without an answer after which executors are probed, and between probes.
const INTERVAL: Duration = Duration::from_secs(10);

/// Number of probes in a row that may fail. A probe may have been sent to an executor that was lost at that moment.
const FAILED_PROBES: u32 = 3;

/// Waits for the outcome of a request, for as long as executors answer probes.
pub(crate) async fn watched<T, P: Future<Output = Result<()>>>(
    request: impl Future<Output = Result<T>>,
    probe: impl Fn() -> P,
) -> Result<T> {
    watched_at(INTERVAL, PROBE_TIMEOUT, request, probe).await
}

async fn watched_at<T, P: Future<Output = Result<()>>>(
    interval: Duration,
    patience: Duration,
    request: impl Future<Output = Result<T>>,
    probe: impl Fn() -> P,
) -> Result<T> {
    let mut request = pin!(request);
    let mut failures = 0;
    loop {
        if let Ok(outcome) = timeout(interval, &mut request).await {
            return outcome;
        }
        let answer = tokio::select! {
            outcome = &mut request => return outcome,
            answer = timeout(patience, probe()) => answer,
        };
        match answer {
            Ok(Ok(())) => failures = 0,
            Ok(Err(error)) => {
                failures += 1;
                if failures == FAILED_PROBES {
                    return Err(error);
                }
            }
            Err(_) => {
                let problem = format!("no executor answered within {} s", patience.as_secs());
                return Err(DataFusionError::Execution(problem));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::pending;

    const INTERVAL: Duration = Duration::from_millis(5);
    const PATIENCE: Duration = Duration::from_secs(1);

    fn wait<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    fn failed() -> Result<()> {
        Err(DataFusionError::Execution("refused".to_owned()))
    }

    #[test]
    fn a_long_request_ends_as_long_as_executors_answer() {
        let probes = Cell::new(0);
        let request = async {
            // Ends after some probes, every other of which is lost.
            while probes.get() < 9 {
                tokio::time::sleep(INTERVAL).await;
            }
            Ok(7)
        };
        let probe = || {
            probes.set(probes.get() + 1);
            let is_lost = probes.get() % 2 == 0;
            async move { if is_lost { failed() } else { Ok(()) } }
        };
        assert_eq!(wait(watched_at(INTERVAL, PATIENCE, request, probe)).unwrap(), 7);
    }

    #[test]
    fn a_request_fails_when_no_executor_answers() {
        let silent = wait(watched_at(INTERVAL, PATIENCE, pending::<Result<()>>(), pending));
        assert!(silent.unwrap_err().to_string().contains("no executor answered within 1 s"));
        let refused = wait(watched_at(INTERVAL, PATIENCE, pending::<Result<()>>(), || async { failed() }));
        assert!(refused.unwrap_err().to_string().contains("refused"));
    }
}
