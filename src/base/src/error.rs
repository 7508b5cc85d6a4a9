//! One error type for the library. A user error names the place, what was found there, and what
//! to do about it; the binary prints [`Error`] and then its [`Error::remedy`].

use std::fmt;

/// The result of anything that can fail in planetree.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, as the user should hear it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of an input file cannot be read as it stands.
    #[error("{}: {}", .0.at, .0.problem)]
    Input(Box<InputError>),

    /// A file, directory or object cannot be used.
    #[error("{place}: {problem}")]
    Place {
        /// Path or URL, without credentials.
        place: String,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        remedy: String,
    },

    /// The command line asks for something that cannot be done.
    #[error("{problem}")]
    Usage {
        /// What cannot be done.
        problem: String,
        /// What to write instead.
        remedy: String,
    },

    /// These data and parameters make no model, however often they are tried; what is inside says why.
    #[error("{0}")]
    Untrainable(Box<Error>),

    /// The user pressed Ctrl-C, or the process was asked to end.
    #[error("interrupted; nothing was written")]
    Interrupted,

    /// The same, with a checkpoint to go on from.
    #[error("interrupted after round {round}; {place} has everything so far")]
    Stopped {
        /// The last complete round.
        round: u32,
        /// The checkpoint.
        place: String,
    },
}

/// A fault in one line of one input.
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
    /// A fault of a file, directory or object.
    pub fn place(place: impl fmt::Display, problem: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        Error::Place { place: place.to_string(), problem: problem.to_string(), remedy: remedy.to_string() }
    }

    /// A misuse of the command line.
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
        // The system's text without the "(os error N)" that helps nobody.
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
            Error::Stopped { .. } => Some("run the same command with --resume to go on"),
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
