//! Turns the texts of failures, which the engine wraps in its own words, into errors with a cause and a remedy.

use super::work_folder::NO_SPACE;
use planetree_base::error::Error;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Returns the error to report if a failure is permanent, or `None` if a retry may help.
pub(crate) fn permanent_failure(shown: &str, has_answered: bool, text: &str) -> Option<Error> {
    let says = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    if says(&["certificate", "Certificate", "fatal alert"]) {
        return Some(Error::place(
            shown,
            format_args!("the certificates were rejected: {}", first_line(text)),
            "pass the authority that signed the cluster's certificates as --tls-ca, and a certificate signed by it",
        ));
    }
    if says(&["Unauthenticated", "the token is missing or wrong"]) {
        return Some(Error::place(
            shown,
            "the token is missing or wrong",
            "pass the token of the cluster with --token-file",
        ));
    }
    if says(&["incompatible", "ballista-version"]) {
        return Some(Error::place(shown, first_line(text), "run the same build of planetree everywhere"));
    }
    if !has_answered && says(&NO_CONNECTION) && !is_listening(shown) {
        return Some(Error::place(
            shown,
            "no scheduler is listening at this address",
            "start one with `planetree scheduler`, or check the address",
        ));
    }
    None
}

/// Returns the error of a request that was repeated in vain.
pub(crate) fn no_response(shown: &str, has_answered: bool, problem: &str) -> Error {
    let remedy = match has_answered {
        _ if problem.contains(NO_SPACE) => {
            "free space in the directory --work-dir of the executors, or choose another one"
        }
        true => {
            "check the scheduler and its executors; training with --checkpoint can continue with --resume"
        }
        false => "check the address, and pass certificates if the cluster requires them",
    };
    Error::place(shown, format_args!("no response from the cluster: {problem}"), remedy)
}

/// Returns the first line of a text, or its start if the line is long.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(500).collect()
}

/// Returns the cause of a failed task from the text that the engine wraps around it, which begins with a list of all tasks.
pub(crate) fn cause_of(text: &str) -> &str {
    let text = text.rsplit("most recent failure reason: ").next().unwrap_or(text);
    // A full disk is reported by `check_room`, and arrives as the `Debug` output of its error.
    let full_disk = || {
        let (_, error) = text.split_once("StorageFull, error: ")?;
        let (start, end) = (error.find("executor ")?, error.find(NO_SPACE)? + NO_SPACE.len());
        error.get(start..end)
    };
    full_disk().unwrap_or(text)
}

/// What texts about connections that cannot be established contain.
const NO_CONNECTION: [&str; 4] = ["ConnectError", "Connection refused", "dns error", "FetchFailed"];

/// Returns whether a failed connection is one to an executor, which may have been lost after it had answered.
pub(crate) fn is_of_executor(shown: &str, text: &str) -> bool {
    NO_CONNECTION.iter().any(|sign| text.contains(sign)) && is_listening(shown)
}

/// Returns whether the scheduler accepts connections. The texts of the engine do not always say whose connection failed.
fn is_listening(address: &str) -> bool {
    const PATIENCE: Duration = Duration::from_secs(2);
    let mut addresses = address.to_socket_addrs().into_iter().flatten();
    addresses.any(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_lost_executor_is_not_a_missing_scheduler() {
        let scheduler = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = scheduler.local_addr().unwrap().to_string();
        let text = "tonic::transport::Error(Transport, ConnectError(\"tcp connect error\", 127.0.0.1:7))";
        assert!(is_of_executor(&address, text) && !is_of_executor(&address, "h2 protocol error"));
        assert!(permanent_failure(&address, false, text).is_none());
        drop(scheduler);
        assert!(!is_of_executor(&address, text));
        let error = permanent_failure(&address, false, text).unwrap();
        assert!(error.to_string().contains("no scheduler is listening"), "{error}");
        assert!(permanent_failure(&address, true, text).is_none());
    }

    #[test]
    fn the_cause_of_a_failed_task_is_found_in_the_text_of_the_engine() {
        let text = r#"Execution error: Job 1 failed: Job failed due to stage 1 failed: Tasks [0, 1] in Stage 1 failed 4 times, fail the stage, most recent failure reason: "Task failed due to IO error: DataFusionError(Shared(External(DataFusionError(IoError(Custom { kind: StorageFull, error: \"executor host, process 7: work: No space left on device\" })))))""#;
        assert_eq!(cause_of(text), "executor host, process 7: work: No space left on device");
        assert_eq!(
            cause_of("Job 1 failed: all executors were lost"),
            "Job 1 failed: all executors were lost"
        );
    }
}
