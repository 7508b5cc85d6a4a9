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
    let mut request = pin!(request);
    let mut failures = 0;
    loop {
        if let Ok(outcome) = timeout(INTERVAL, &mut request).await {
            return outcome;
        }
        let answer = tokio::select! {
            outcome = &mut request => return outcome,
            answer = timeout(PROBE_TIMEOUT, probe()) => answer,
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
                let seconds = PROBE_TIMEOUT.as_secs();
                let problem = format!("no executor answered within {seconds} s");
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

    fn wait<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(future)
    }

    async fn slow() -> Result<u32> {
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        Ok(7)
    }

    #[test]
    fn a_long_request_ends_as_long_as_executors_answer() {
        let probes = Cell::new(0);
        let outcome = wait(watched(slow(), || {
            probes.set(probes.get() + 1);
            // Every other probe is lost.
            let lost = probes.get() % 2 == 0;
            async move { if lost { Err(DataFusionError::Execution("lost".to_owned())) } else { Ok(()) } }
        }));
        assert_eq!((outcome.unwrap(), probes.get()), (7, 8_639));
    }

    #[test]
    fn a_request_fails_when_no_executor_answers() {
        let outcome = wait(async {
            let begun = tokio::time::Instant::now();
            (watched(slow(), pending).await, begun.elapsed())
        });
        assert!(outcome.0.unwrap_err().to_string().contains("no executor answered within 20 s"));
        assert_eq!(outcome.1.as_secs(), 30);
        let refused = || async { Err(DataFusionError::Execution("refused".to_owned())) };
        assert!(wait(watched(slow(), refused)).unwrap_err().to_string().contains("refused"));
    }
}
