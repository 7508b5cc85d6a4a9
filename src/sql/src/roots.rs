//! Decides which paths SQL may access. A query may come from an untrusted source, so it can read only below the roots:
//! the current directory, the run directory, and the paths of `--allow-path` and `--allow-write`. It can write only
//! below `--allow-write`. Links and `..` are resolved before paths are compared, so they cannot lead outside.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location, redacted_url, refuse_hidden};
use std::path::{Component, Path, PathBuf};
use url::Url;

/// The directories and URLs that paths in SQL must lie below.
#[derive(Debug)]
pub struct Roots {
    /// The current directory, from which relative paths start.
    current: PathBuf,
    /// Roots for reading.
    read: RootSet,
    /// Roots for writing. They are also in `read`.
    write: RootSet,
    access: Access,
}

/// Local and remote roots.
#[derive(Debug, Default)]
struct RootSet {
    /// Directories, with links resolved.
    local: Vec<PathBuf>,
    /// URLs, each with a trailing slash.
    remote: Vec<Url>,
}

impl RootSet {
    fn add(&mut self, text: &str) -> Result<()> {
        match local_path(text)? {
            Some(path) => {
                // An output directory may not exist yet. Links in the existing part of its path are resolved.
                let path = std::path::absolute(path).map_err(|error| Error::io(text, "open", error))?;
                self.local.push(resolve_links(&path)?);
            }
            None => self.remote.push(as_directory(parse_url(text)?)),
        }
        Ok(())
    }

    /// Returns the root that contains a path.
    fn root_of(&self, path: &Path) -> Option<&Path> {
        self.local.iter().map(PathBuf::as_path).find(|root| path.starts_with(root))
    }

    fn contains(&self, url: &Url) -> bool {
        self.remote.iter().any(|root| is_below(url, root))
    }
}

impl Roots {
    /// Creates the roots. SQL may read below the current directory and below the readable and writable paths. It may
    /// write only below the writable paths.
    pub fn new<'t>(
        readable: impl IntoIterator<Item = &'t str>,
        writable: impl IntoIterator<Item = &'t str>,
        access: Access,
    ) -> Result<Self> {
        let current = std::env::current_dir()
            .and_then(|path| path.canonicalize())
            .map_err(|error| Error::io("the current directory", "read", error))?;
        let mut read = RootSet { local: vec![current.clone()], remote: Vec::new() };
        for text in readable {
            if let Some(path) = local_path(text)? {
                // A path that does not exist is most likely misspelt, so it is an error.
                path.canonicalize().map_err(|error| Error::io(text, "open", error))?;
            }
            read.add(text)?;
        }
        let mut write = RootSet::default();
        for text in writable {
            read.add(text)?;
            write.add(text)?;
        }
        Ok(Roots { current, read, write, access })
    }

    /// Returns the permitted sources of credentials for object stores.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the location that a path in SQL names. Fails if SQL may not read it. Links in a local path are
    /// resolved, so that the file that is opened is the file that was checked.
    pub fn resolve(&self, text: &str) -> Result<Location> {
        let Some(path) = local_path(text)? else {
            let url = parse_url(text)?;
            if self.read.contains(&url) {
                return Location::parse(text, self.access);
            }
            return Err(unreadable(&redacted_url(&url), &redacted_url(&parent_of(&url))));
        };
        let resolved = resolve_links(&self.current.join(path))?;
        if self.read.root_of(&resolved).is_some() {
            return Ok(Location::Local(resolved));
        }
        let parent = resolved.parent().unwrap_or(&resolved);
        Err(unreadable(text, &parent.display().to_string()))
    }

    /// Checks whether the current directory has an entry of a name. It may be a link, wherever it leads.
    pub(crate) fn has_entry(&self, name: &str) -> bool {
        self.current.join(name).symlink_metadata().is_ok()
    }

    /// Returns the location that an output path in SQL names. Fails if SQL may not write it, because it is not below
    /// `--allow-write` or is hidden.
    pub(crate) fn resolve_to_write(&self, text: &str) -> Result<Location> {
        let Some(path) = local_path(text)? else {
            let url = parse_url(text)?;
            if !self.write.contains(&url) {
                return Err(unwritable(&redacted_url(&url), &redacted_url(&parent_of(&url))));
            }
            let location = Location::parse(text, self.access)?;
            refuse_hidden(&location)?;
            return Ok(location);
        };
        let path = self.current.join(path);
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(Error::place(
                text,
                "refusing to write through a symbolic link",
                "use the target of the link",
            ));
        }
        let resolved = resolve_links(&path)?;
        let Some(root) = self.write.root_of(&resolved) else {
            let parent = resolved.parent().unwrap_or(&resolved);
            return Err(unwritable(text, &parent.display().to_string()));
        };
        // The root itself may be hidden, because the user named it.
        let below = resolved.strip_prefix(root).unwrap_or(&resolved);
        refuse_hidden(&Location::Local(below.to_owned()))?;
        Ok(Location::Local(resolved))
    }

    /// Returns the files that match a pattern in SQL. Fails if one of them may not be read.
    pub fn expand(&self, pattern: &str) -> Result<Vec<Location>> {
        // Special characters in the name of the current directory are escaped, because they are not part of the
        // pattern.
        let full = match Path::new(pattern).is_absolute() {
            true => pattern.to_owned(),
            false => format!("{}/{pattern}", glob::Pattern::escape(&self.current.to_string_lossy())),
        };
        let bad = |error: glob::PatternError| Error::place(pattern, error.msg, "correct the pattern");
        // Whether files outside the roots exist, and how they are called, must not be seen. The part before the first
        // special character is therefore checked before any directory is read, and errors show the pattern only.
        let parts = || pattern.split('/');
        let is_special = |part: &str| part.contains(['*', '?', '[']);
        let fixed: Vec<&str> = parts().take_while(|part| !is_special(part)).collect();
        let directory = match fixed.join("/") {
            start if start.is_empty() && pattern.starts_with('/') => "/".to_owned(),
            start if start.is_empty() => ".".to_owned(),
            start => start,
        };
        let outside = || unreadable(pattern, &directory);
        self.resolve(&directory).map_err(|_| outside())?;
        if parts().skip_while(|part| !is_special(part)).any(|part| part == "..") {
            return Err(Error::place(
                pattern,
                "the pattern has .. after a special character",
                "write the path without ..",
            ));
        }
        let found = glob::glob(&full).map_err(bad)?;
        found.flatten().map(|path| self.resolve(&path.to_string_lossy()).map_err(|_| outside())).collect()
    }
}

/// Returns the local path that a string names, or `None` if it is the URL of an object store.
fn local_path(text: &str) -> Result<Option<PathBuf>> {
    match text.split_once("://") {
        None => Ok(Some(PathBuf::from(text))),
        Some(("file", _)) => match Location::parse(text, Access::Explicit)? {
            Location::Local(path) => Ok(Some(path)),
            Location::Remote(_) => Ok(None),
        },
        Some(_) => Ok(None),
    }
}

/// Resolves the links in the existing part of a path. The rest must not contain `..`.
fn resolve_links(path: &Path) -> Result<PathBuf> {
    let mut existing = path;
    let mut rest = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(mut resolved) => {
                rest.iter().rev().for_each(|name| resolved.push(name));
                return Ok(resolved);
            }
            Err(error) => {
                let is_link = existing.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
                match (existing.components().next_back(), existing.parent()) {
                    (Some(Component::Normal(name)), Some(parent)) if !is_link => {
                        rest.push(name);
                        existing = parent;
                    }
                    _ => return Err(Error::io(path.display(), "open", error)),
                }
            }
        }
    }
}

fn parse_url(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| {
        let scheme = text.split("://").next().unwrap_or_default();
        Error::place(format_args!("{scheme}://..."), format_args!("not a URL: {error}"), "check the spelling")
    })
}

/// Adds a trailing slash to a URL, so that `s3://bucket/run` does not allow `s3://bucket/run-2`.
fn as_directory(mut url: Url) -> Url {
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    url
}

fn is_below(url: &Url, root: &Url) -> bool {
    let origin =
        |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    // Parsing has resolved dots. Percent-encoded dots and slashes are refused, because a store may decode them later.
    let is_plain = !["%2e", "%2f", "%5c"].iter().any(|code| url.path().to_ascii_lowercase().contains(code));
    let path = as_directory(url.clone());
    is_plain && origin(url) == origin(root) && path.path().starts_with(root.path())
}

fn parent_of(url: &Url) -> Url {
    let mut parent = url.clone();
    if let Ok(mut segments) = parent.path_segments_mut() {
        segments.pop();
    }
    as_directory(parent)
}

fn unreadable(place: &str, allow: &str) -> Error {
    Error::place(
        place,
        "SQL may not read this: it is outside the current directory, the run directory and the paths of --allow-path",
        format_args!("pass --allow-path {allow}, or name the table with --table name=PATH"),
    )
}

fn unwritable(place: &str, allow: &str) -> Error {
    Error::place(
        place,
        "SQL may not write here: the path is not below a directory or URL passed with --allow-write",
        format_args!("pass --allow-write {allow}, or write the result with -o FILE"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn roots(directory: &Path, remote: &[&str]) -> Roots {
        let directory = directory.canonicalize().unwrap();
        let remote = remote.iter().map(|text| as_directory(Url::parse(text).unwrap())).collect();
        let read = RootSet { local: vec![directory.clone()], remote };
        Roots { current: directory, read, write: RootSet::default(), access: Access::Explicit }
    }

    #[test]
    fn neither_links_nor_dots_lead_outside() {
        let room = tempfile::tempdir().unwrap();
        let inside = room.path().join("in");
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        std::fs::write(room.path().join("secret"), "x").unwrap();
        std::fs::write(inside.join("table"), "x").unwrap();
        symlink("../secret", inside.join("link")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("table", inside.join("fine")).unwrap();
        symlink("../gone", inside.join("dangling")).unwrap();
        let roots = roots(&inside, &[]);
        let secret = room.path().canonicalize().unwrap().join("secret");
        for text in [
            "../secret",
            "link",
            "up/secret",
            "deep/../../secret",
            "/etc/passwd",
            "..",
            "up",
            "../new",
            "deep/../../new",
            secret.to_str().unwrap(),
            &format!("file://{}", secret.display()),
        ] {
            let error = roots.resolve(text).unwrap_err();
            assert!(error.to_string().contains("SQL may not read this"), "{text}: {error}");
            assert!(error.remedy().unwrap().starts_with("pass --allow-path /"), "{text}");
        }
        for text in ["dangling", "new/../../secret", "dangling/below"] {
            assert!(roots.resolve(text).is_err(), "{text}");
        }
        assert!(roots.has_entry("link") && roots.has_entry("dangling") && !roots.has_entry("absent"));
        for text in ["table", "./table", "deep/../table", "fine", "deep/new/file", "absent"] {
            let place = roots.resolve(text).unwrap().to_string();
            assert!(Path::new(&place).starts_with(inside.canonicalize().unwrap()), "{text}: {place}");
        }
        assert_eq!(
            roots.expand("*").unwrap_err().exit_code(),
            1,
            "the pattern matches links that lead outside"
        );
        assert_eq!(roots.expand("ta*").unwrap().len(), 1);
        for (pattern, allow) in
            [("../se*", ".."), ("../none*", ".."), ("up/*", "up"), ("/e*c/*", "/"), ("*", ".")]
        {
            let error = roots.expand(pattern).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{pattern}: SQL may not read this")), "{error}");
            let remedy = error.remedy().unwrap();
            assert!(remedy.starts_with(&format!("pass --allow-path {allow},")), "{remedy}");
            assert!(!format!("{error}{remedy}").contains("secret"), "{error}");
        }
        assert!(roots.expand("de*/../../secret").unwrap_err().to_string().contains(".. after"));
    }

    #[test]
    fn sql_writes_only_below_its_roots() {
        let room = tempfile::tempdir().unwrap();
        let room = room.path().canonicalize().unwrap();
        std::fs::create_dir_all(room.join("out/deep")).unwrap();
        std::fs::write(room.join("table"), "x").unwrap();
        symlink("../table", room.join("out/link")).unwrap();
        symlink("..", room.join("out/up")).unwrap();
        symlink("deep", room.join("out/down")).unwrap();
        let mut roots = roots(&room, &[]);
        assert!(
            roots.resolve_to_write("out/x.csv").unwrap_err().to_string().contains("SQL may not write here")
        );
        for name in ["out", "later/.hidden"] {
            roots.write.add(room.join(name).to_str().unwrap()).unwrap();
        }
        roots.write.add("s3://bucket/run").unwrap();
        for text in [
            "x.csv",
            "out/../x.csv",
            "out/link",
            "out/up/x.csv",
            "/tmp/x.csv",
            "s3://bucket/x.csv",
            "out/.x.csv",
            "out/.git/x",
        ] {
            assert!(roots.resolve_to_write(text).is_err(), "{text}");
        }
        for text in ["out/x.csv", "out/deep/new/x.csv", "out/down/x.csv", "later/.hidden/x.csv"] {
            roots.resolve_to_write(text).unwrap();
        }
    }

    #[test]
    fn urls_are_compared_by_whole_path_segments() {
        let root = Url::parse("s3://bucket/run").unwrap();
        let allows = |text: &str| is_below(&Url::parse(text).unwrap(), &as_directory(root.clone()));
        assert!(
            allows("s3://bucket/run/a.parquet") && allows("s3://bucket/run") && allows("s3://bucket/run/")
        );
        for text in [
            "s3://bucket/run-2/a",
            "s3://bucket/a",
            "s3://bucket/run/../a",
            "s3://other/run/a",
            "gs://bucket/run/a",
            "s3://bucket/run/%2e%2e/a",
            "s3://bucket/run/%2E./%2fa",
            "s3://bucket/run%2f..%2fa",
        ] {
            assert!(!allows(text), "{text}");
        }
        let room = tempfile::tempdir().unwrap();
        let error = roots(room.path(), &[]).resolve("https://me:sentinel@host/a/b?sig=sentinel").unwrap_err();
        assert!(!format!("{error} {:?}", error.remedy()).contains("sentinel"), "{error}");
        assert!(error.remedy().unwrap().starts_with("pass --allow-path https://host/a/,"));
    }
}
