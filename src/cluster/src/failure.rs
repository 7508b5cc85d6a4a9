//! Turns the texts of failures, which the engine wraps in its own words, into errors with a cause and a remedy.

use super::work_folder::NO_SPACE;
use planetree_base::error::Error;

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
    if !has_answered && !is_of_executor(text) && says(&["ConnectError", "Connection refused", "dns error"]) {
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

/// Returns whether a failed connection is one to an executor, which may have been lost after it had answered.
pub(crate) fn is_of_executor(text: &str) -> bool {
    text.contains("scheduler or executor at ")
}

#[cfg(test)]
mod tests {
    use super::cause_of;

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
