//! The error type of the library. A user error has a place, a problem and a remedy; the binary
//! prints [`Error`] and then its [`Error::remedy`].

use std::fmt;

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
        /// Path or URL, without credentials.
        place: String,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        remedy: String,
    },

    /// An invalid command line or request.
    #[error("{problem}")]
    Usage {
        /// What is invalid.
        problem: String,
        /// What to use instead.
        remedy: String,
    },

    /// Data and parameters that cannot give a model; the inner error is the cause. Retrying cannot help.
    #[error("{0}")]
    Untrainable(Box<Error>),

    /// Stopped by Ctrl-C or a termination signal.
    #[error("interrupted; nothing was written")]
    Interrupted,

    /// The same, with a checkpoint to resume from.
    #[error("interrupted after round {round}; {place} has everything so far")]
    Stopped {
        /// The last complete round.
        round: u32,
        /// Location of the checkpoint.
        place: String,
    },
}

/// An error in a line of an input.
#[derive(Debug)]
pub struct InputError {
    /// Where it is.
    pub at: Position,
    /// What was found and what was expected.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// A place in an input: lines and columns count from 1, columns in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Path or URL as given by the user, `<stdin>` for standard input.
    pub file: String,
    /// Line number, counted from 1.
    pub line: u64,
    /// Byte within the line, counted from 1.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Error {
    /// An error about a file, directory or object.
    pub fn place(place: impl fmt::Display, problem: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        Error::Place { place: place.to_string(), problem: problem.to_string(), remedy: remedy.to_string() }
    }

    /// An error about the command line or request.
    pub fn usage(problem: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        Error::Usage { problem: problem.to_string(), remedy: remedy.to_string() }
    }

    /// A failed system call on `place`, with the remedy its kind suggests.
    pub fn io(place: impl fmt::Display, doing: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let remedy = match error.kind() {
            ErrorKind::NotFound => "check the spelling of the path",
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "check the permissions, or choose another place"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "free some space or choose another place; nothing was left behind"
            }
            ErrorKind::IsADirectory => "name a file",
            ErrorKind::NotADirectory => "name a directory",
            _ => "check the file and the device it is on",
        };
        // Drop the "(os error N)" suffix, which does not help users.
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Error::place(place, format_args!("cannot {doing}: {text}"), remedy)
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Error::Input(input) => Some(input.remedy.as_str()),
            Error::Place { remedy, .. } | Error::Usage { remedy, .. } => Some(remedy.as_str()),
            Error::Untrainable(inner) => inner.remedy(),
            Error::Stopped { .. } => Some("run the same command with --resume to continue"),
            Error::Interrupted => None,
        }
        .filter(|remedy| !remedy.is_empty())
    }

    /// The exit code of a process that ends with this error: 2 for misuse, 1 for failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage { .. } => 2,
            Error::Untrainable(inner) => inner.exit_code(),
            _ => 1,
        }
    }
}
