//! The error type of the library. A user error states where the problem is, what is wrong, and what the user can do.
//! The program prints the [`Error`] and then its [`Error::remedy`]. Errors of the operating system and of other
//! libraries remain available through [`std::error::Error::source`].

use std::fmt;

/// An error of the operating system or of another library that caused an [`Error`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Result with planetree's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error as shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A malformed line of an input file.
    #[error("{}: {}", .0.at, .0.problem)]
    Input(Box<InputError>),

    /// An unusable file, directory or object.
    #[error("{place}: {problem}")]
    Place {
        /// Path or URL of the file, directory or object, without credentials.
        place: String,
        /// What is wrong with the file, directory or object.
        problem: String,
        /// What the user can do about the problem.
        remedy: String,
        /// The underlying error, if another library reported one.
        source: Option<Cause>,
    },

    /// An invalid command line or request.
    #[error("{problem}")]
    Usage {
        /// What is invalid.
        problem: String,
        /// What to use instead.
        remedy: String,
    },

    /// The data and parameters cannot produce a model, for the reason given by the inner error. Retrying cannot help.
    #[error(transparent)]
    Untrainable(Box<Error>),

    /// A result that is worse than the user allows. The result itself was computed and written.
    #[error("{problem}")]
    QualityGate {
        /// Which result is worse than allowed.
        problem: String,
    },

    /// A bug in planetree: the program reached a state that no input should be able to cause.
    #[error("internal error: {at}: {problem}")]
    Bug {
        /// The operation that failed.
        at: String,
        /// What went wrong.
        problem: String,
        /// The underlying error, if another library reported one.
        source: Option<Cause>,
    },

    /// The command was stopped by Ctrl-C or a termination signal.
    #[error("interrupted; nothing was written")]
    Interrupted,

    /// Training was stopped by Ctrl-C or a termination signal and can be resumed from a checkpoint.
    #[error("interrupted after round {round}; the progress is saved in {place}")]
    Stopped {
        /// The last complete round.
        round: u32,
        /// Location of the checkpoint.
        place: String,
    },
}

/// An error in one line of an input file.
#[derive(Debug)]
pub struct InputError {
    /// The file, line and column of the error.
    pub at: Position,
    /// What was found and what was expected.
    pub problem: String,
    /// What the user can do about the problem.
    pub remedy: String,
}

/// A position in an input file, displayed as `file:line:column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Path or URL as given by the user, or `<stdin>` for standard input.
    pub file: String,
    /// Line number, counted from 1.
    pub line: u64,
    /// Column in bytes, counted from 1.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Error {
    /// Creates an error about a file, directory or object.
    pub fn place(place: impl fmt::Display, problem: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        let (place, problem, remedy) = (place.to_string(), problem.to_string(), remedy.to_string());
        Error::Place { place, problem, remedy, source: None }
    }

    /// Creates an error for a bug in planetree that was detected during the operation `at`.
    pub fn bug(at: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Error::Bug { at: at.to_string(), problem: problem.to_string(), source: None }
    }

    /// Attaches the underlying error as the source. Only [`Error::Place`] and [`Error::Bug`] store it.
    pub fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        if let Error::Place { source, .. } | Error::Bug { source, .. } = &mut self {
            *source = Some(cause.into());
        }
        self
    }

    /// Creates an error about the command line or a request.
    pub fn usage(problem: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        Error::Usage { problem: problem.to_string(), remedy: remedy.to_string() }
    }

    /// Creates an error for threads that the system refuses to start.
    pub fn threads(error: impl fmt::Display) -> Self {
        tracing::debug!("cannot start a thread: {error}");
        Error::usage(
            "cannot start a thread: the limit of this user or container is reached",
            "lower --threads, or raise the limit of processes (ulimit -u, or pids.max of the container)",
        )
    }

    /// Adds the step in which the error occurred, such as `fold 2`, to the beginning of its message. Errors at a place in
    /// an input file stay as they are.
    pub fn within(self, step: impl fmt::Display) -> Self {
        match self {
            Error::Usage { problem, remedy } => Error::usage(format_args!("{step}: {problem}"), remedy),
            Error::Place { place, problem, remedy, source } => {
                Error::Place { place: format!("{step}: {place}"), problem, remedy, source }
            }
            Error::Bug { at, problem, source } => Error::Bug { at: format!("{step}: {at}"), problem, source },
            Error::Untrainable(inner) => Error::Untrainable(Box::new(inner.within(step))),
            other => other,
        }
    }

    /// Creates an error for a failed system call on `place`. The remedy depends on the kind of the system error.
    pub fn io(place: impl fmt::Display, doing: &str, error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        /// ENFILE and EMFILE, the limits of the system and of a process, which have no kind of their own.
        const TOO_MANY_FILES: [Option<i32>; 2] = [Some(23), Some(24)];
        let remedy = match error.kind() {
            _ if TOO_MANY_FILES.contains(&error.raw_os_error()) => {
                "raise the limit of open files, for example with: ulimit -n 1024"
            }
            ErrorKind::NotFound => "check the spelling of the path",
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "check the permissions, or choose another location"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "free some disk space or choose another location; no incomplete output was left behind"
            }
            ErrorKind::IsADirectory => "give the path of a file",
            ErrorKind::NotADirectory => "give the path of a directory",
            _ => "check the file and the disk or network drive that holds it",
        };
        // Drop the "(os error N)" suffix, which does not help users.
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Error::place(place, format_args!("cannot {doing}: {text}"), remedy).caused_by(error)
    }

    /// Returns what the user can do about the error; `None` if there is no advice.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Error::Input(input) => Some(input.remedy.as_str()),
            Error::Place { remedy, .. } | Error::Usage { remedy, .. } => Some(remedy.as_str()),
            Error::Untrainable(inner) => inner.remedy(),
            Error::Stopped { .. } => Some("run the same command with --resume to continue"),
            Error::Bug { .. } => {
                Some("this is a bug in planetree: please report it with the command and its output")
            }
            Error::Interrupted | Error::QualityGate { .. } => None,
        }
        .filter(|remedy| !remedy.is_empty())
    }

    /// Replaces what the user can do about the error, where it says something.
    pub fn map_remedy(mut self, change: impl FnOnce(&str) -> String) -> Self {
        match &mut self {
            Error::Input(input) => input.remedy = change(&input.remedy),
            Error::Place { remedy, .. } | Error::Usage { remedy, .. } => *remedy = change(remedy),
            _ => {}
        }
        self
    }

    /// Changes every text of the error: its place, problem and remedy.
    pub fn map_texts(mut self, change: &dyn Fn(&str) -> String) -> Self {
        let texts = match &mut self {
            Error::Input(input) => vec![&mut input.at.file, &mut input.problem, &mut input.remedy],
            Error::Place { place, problem, remedy, .. } => vec![place, problem, remedy],
            Error::Usage { problem, remedy } => vec![problem, remedy],
            Error::Bug { at, problem, .. } => vec![at, problem],
            Error::QualityGate { problem } => vec![problem],
            Error::Stopped { place, .. } => vec![place],
            Error::Untrainable(inner) => {
                let changed = std::mem::replace(&mut **inner, Error::Interrupted).map_texts(change);
                **inner = changed;
                Vec::new()
            }
            Error::Interrupted => Vec::new(),
        };
        for text in texts {
            *text = change(text);
        }
        self
    }

    /// Returns the exit code of a process that ends with this error: 2 for incorrect usage, 3 for a failed quality
    /// gate, 1 for all other errors.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage { .. } => 2,
            Error::QualityGate { .. } => 3,
            Error::Untrainable(inner) => inner.exit_code(),
            _ => 1,
        }
    }
}

/// Copies a system error, which does not implement `Clone`. The copy has the same kind and message.
pub fn copy_of(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_system_error_is_kept_as_the_source() {
        let error = Error::io("a.txt", "open", std::io::Error::from_raw_os_error(24));
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("ulimit -n")), "{error}");
        let error = Error::io("a.txt", "open", std::io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "a.txt: cannot open: No such file or directory");
        let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(source.and_then(std::io::Error::raw_os_error), Some(2));
    }

    #[test]
    fn an_untrainable_error_has_the_source_of_its_cause() {
        let inner = Error::io("a.txt", "open", std::io::Error::from_raw_os_error(13));
        let error = Error::Untrainable(Box::new(inner));
        assert!(error.source().is_some_and(|source| source.is::<std::io::Error>()));
        assert_eq!(error.remedy(), Some("check the permissions, or choose another location"));
    }

    #[test]
    fn an_error_within_a_step_starts_with_it_and_keeps_its_kind_and_source() {
        let inner = Error::io("a.txt", "open", std::io::Error::from_raw_os_error(2)).within("fold 2");
        assert!(inner.source().is_some());
        let error = Error::Untrainable(Box::new(inner)).within("trial 3");
        assert_eq!(error.to_string(), "trial 3: fold 2: a.txt: cannot open: No such file or directory");
        assert!(matches!(error, Error::Untrainable(_)));
        assert_eq!(Error::usage("bad", "good").within("fold 1").to_string(), "fold 1: bad");
        assert!(matches!(Error::Interrupted.within("fold 1"), Error::Interrupted));
    }

    #[test]
    fn all_texts_of_an_error_can_be_changed() {
        let change = |text: &str| text.replace("/tmp/1", "data.csv");
        let error = Error::place("/tmp/1", "bad /tmp/1", "convert /tmp/1").caused_by(std::fmt::Error);
        let error = Error::Untrainable(Box::new(error)).map_texts(&change);
        assert_eq!(error.to_string(), "data.csv: bad data.csv");
        assert_eq!(error.remedy(), Some("convert data.csv"));
        assert!(matches!(error, Error::Untrainable(_)) && error.source().is_some());
        assert_eq!(Error::usage("no /tmp/1", "").map_texts(&change).to_string(), "no data.csv");
    }

    #[test]
    fn all_threads_that_cannot_be_started_have_one_message() {
        let error = Error::threads("Resource temporarily unavailable");
        assert!(error.to_string().starts_with("cannot start a thread: the limit of this user"), "{error}");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("ulimit -u")));
    }

    #[test]
    fn a_bug_is_its_own_kind() {
        let error = Error::bug("scan", "no columns").caused_by(std::fmt::Error);
        assert!(matches!(error, Error::Bug { .. }));
        assert_eq!(error.to_string(), "internal error: scan: no columns");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("bug in planetree")));
        assert_eq!(error.exit_code(), 1);
        assert!(error.source().is_some());
    }

    #[test]
    fn a_copy_of_a_system_error_has_its_kind() {
        for error in [std::io::Error::from_raw_os_error(28), std::io::Error::other("closed")] {
            assert_eq!(copy_of(&error).kind(), error.kind());
            assert_eq!(copy_of(&error).to_string(), error.to_string());
        }
    }
}
