//! Which places SQL may touch. A query may come from elsewhere, so it reads and writes only below what the
//! user named: the current directory, the run's directory, and `--allow-path`. Links and `..` are followed
//! before the place is compared, so they lead nowhere else.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location};
use std::path::{Component, Path, PathBuf};
use url::Url;

/// Places that paths within SQL may lie under.
#[derive(Debug)]
pub struct Roots {
    /// Where relative paths begin.
    current: PathBuf,
    /// Directories, without links.
    local: Vec<PathBuf>,
    /// URLs whose path ends with a slash.
    remote: Vec<Url>,
    access: Access,
}

impl Roots {
    /// The current directory, and what else is named: directories and URLs.
    pub fn new<'t>(allowed: impl IntoIterator<Item = &'t str>, access: Access) -> Result<Self> {
        let current = std::env::current_dir()
            .and_then(|path| path.canonicalize())
            .map_err(|error| Error::io("the current directory", "read", &error))?;
        let mut roots = Roots { local: vec![current.clone()], current, remote: Vec::new(), access };
        for text in allowed {
            match local_path(text)? {
                Some(path) => {
                    let path = path.canonicalize().map_err(|error| Error::io(text, "open", &error))?;
                    roots.local.push(path);
                }
                None => roots.remote.push(as_directory(parse_url(text)?)),
            }
        }
        Ok(roots)
    }

    /// Where credentials may come from.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The place that a path within SQL names, if it may be touched. A local one comes without links, so
    /// that what was checked is what is opened.
    pub fn resolve(&self, text: &str) -> Result<Location> {
        let Some(path) = local_path(text)? else {
            let url = parse_url(text)?;
            if self.remote.iter().any(|root| is_below(&url, root)) {
                return Location::parse(text, self.access);
            }
            let mut parent = url.clone();
            if let Ok(mut segments) = parent.path_segments_mut() {
                segments.pop();
            }
            return Err(refused(&without_secrets(&url), &without_secrets(&as_directory(parent))));
        };
        let place = real_place(&self.current.join(path))?;
        if self.local.iter().any(|root| place.starts_with(root)) {
            return Ok(Location::Local(place));
        }
        let parent = place.parent().unwrap_or(&place);
        Err(refused(text, &parent.display().to_string()))
    }

    /// The files that a pattern within SQL names, all of which may be touched.
    pub fn expand(&self, pattern: &str) -> Result<Vec<Location>> {
        // The pattern is one, the directory's own name is not.
        let full = match Path::new(pattern).is_absolute() {
            true => pattern.to_owned(),
            false => format!("{}/{pattern}", glob::Pattern::escape(&self.current.to_string_lossy())),
        };
        let bad = |error: glob::PatternError| Error::place(pattern, error.msg, "correct the pattern");
        let found = glob::glob(&full).map_err(bad)?;
        found.flatten().map(|path| self.resolve(&path.to_string_lossy())).collect()
    }
}

/// The path of a text that is no URL of a store.
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

/// A path with all links followed, as far as it exists; what does not exist yet may not lead upwards.
fn real_place(path: &Path) -> Result<PathBuf> {
    let mut existing = path;
    let mut rest = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(mut place) => {
                rest.iter().rev().for_each(|name| place.push(name));
                return Ok(place);
            }
            Err(error) => {
                let is_link = existing.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
                match (existing.components().next_back(), existing.parent()) {
                    (Some(Component::Normal(name)), Some(parent)) if !is_link => {
                        rest.push(name);
                        existing = parent;
                    }
                    _ => return Err(Error::io(path.display(), "open", &error)),
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

/// The URL with a slash at its end, so that `s3://bucket/run` does not allow `s3://bucket/run-2`.
fn as_directory(mut url: Url) -> Url {
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    url
}

fn is_below(url: &Url, root: &Url) -> bool {
    let place =
        |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    // Parsing has resolved dots; what a store would decode later must not bring them back.
    let is_plain = !["%2e", "%2f", "%5c"].iter().any(|code| url.path().to_ascii_lowercase().contains(code));
    let path = as_directory(url.clone());
    is_plain && place(url) == place(root) && path.path().starts_with(root.path())
}

fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs that cannot have them.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

fn refused(place: &str, allow: &str) -> Error {
    Error::place(
        place,
        "SQL may not touch this: it is outside of the current directory and of what --allow-path names",
        format_args!("pass --allow-path {allow}, or name it with --table name=PATH"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn roots(directory: &Path, remote: &[&str]) -> Roots {
        let directory = directory.canonicalize().unwrap();
        let remote = remote.iter().map(|text| as_directory(Url::parse(text).unwrap())).collect();
        Roots { local: vec![directory.clone()], current: directory, remote, access: Access::Explicit }
    }

    #[test]
    fn neither_links_nor_dots_lead_out() {
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
            assert!(error.to_string().contains("SQL may not touch this"), "{text}: {error}");
            assert!(error.remedy().unwrap().starts_with("pass --allow-path /"), "{text}");
        }
        for text in ["dangling", "new/../../secret", "dangling/below"] {
            assert!(roots.resolve(text).is_err(), "{text}");
        }
        for text in ["table", "./table", "deep/../table", "fine", "deep/new/file", "absent"] {
            let place = roots.resolve(text).unwrap().to_string();
            assert!(Path::new(&place).starts_with(inside.canonicalize().unwrap()), "{text}: {place}");
        }
        assert_eq!(roots.expand("*").unwrap_err().exit_code(), 1, "the pattern meets links that lead out");
        assert_eq!(roots.expand("ta*").unwrap().len(), 1);
    }

    #[test]
    fn urls_are_compared_by_whole_names() {
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
