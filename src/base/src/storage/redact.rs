//! Removes secrets from URLs that appear in messages, query plans and records. User names, passwords, query strings
//! and fragments may contain tokens or signatures, so all of these components are removed.

use url::Url;

/// Returns the URL without user name, password, query string and fragment.
pub fn redacted_url(url: &Url) -> String {
    let mut url = url.clone();
    // These calls fail only for URLs that cannot have a user name or password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Removes the secrets from the URLs in a command-line argument. The argument may contain several URLs separated by
/// commas, each optionally preceded by `name=`. URLs without secrets are not changed.
pub fn redacted(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    let mut parts: Vec<String> = Vec::new();
    for piece in text.split(',') {
        match parts.last_mut() {
            // The comma belongs to the previous URL, because text without a URL does not start a new part.
            Some(last) if last.contains("://") && !piece.contains("://") => *last += &format!(",{piece}"),
            _ => parts.push(piece.to_owned()),
        }
    }
    parts.iter().map(|part| redacted_part(part)).collect::<Vec<_>>().join(",")
}

fn redacted_part(text: &str) -> String {
    let Some(start) = text.find("://") else { return text.to_owned() };
    let scheme = text[..start].rfind(|letter: char| !letter.is_ascii_alphanumeric()).map_or(0, |end| end + 1);
    let (before, url) = text.split_at(scheme);
    match Url::parse(url) {
        Ok(url) if url.has_host() && has_secrets(&url) => format!("{before}{}", redacted_url(&url)),
        // A URL that cannot be parsed may still contain a secret, so the whole URL is hidden.
        Err(_) if url.contains(['@', '?', '#']) => format!("{before}(URL)"),
        _ => text.to_owned(),
    }
}

fn has_secrets(url: &Url) -> bool {
    url.password().is_some()
        || !url.username().is_empty()
        || url.query().is_some()
        || url.fragment().is_some()
}

/// Removes the secrets from the URLs in a message. URLs are recognised only if they are separated by whitespace.
pub fn redacted_message(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let (word, space) = word.split_at(word.trim_end().len());
        redacted(word) + space
    });
    words.collect()
}

/// Replaces every URL in a message of another library by `(URL)`.
pub fn without_urls(text: &str) -> String {
    let words = text.split_whitespace().map(|word| if word.contains("://") { "(URL)" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_neither_user_nor_query_nor_fragment() {
        for (text, expected) in [
            ("https://me:sentinel@host/a/b.txt", "https://host/a/b.txt"),
            ("https://sentinel@host:8443/a", "https://host:8443/a"),
            ("https://host/a?X-Amz-Credential=sentinel&X-Amz-Signature=sentinel", "https://host/a"),
            (
                "https://account.blob.core.windows.net/c/a?sv=2024&sig=sentinel",
                "https://account.blob.core.windows.net/c/a",
            ),
            ("https://host/a#sentinel", "https://host/a"),
            ("s3://key:sentinel@bucket/a?token=sentinel#sentinel", "s3://bucket/a"),
            ("s3://bucket/a=b", "s3://bucket/a=b"),
        ] {
            assert_eq!(redacted_url(&Url::parse(text).unwrap()), expected);
        }
    }

    #[test]
    fn arguments_keep_everything_but_the_secrets_of_urls() {
        for (text, expected) in [
            ("https://me:sentinel@host/a/b?sig=sentinel", "https://host/a/b"),
            ("name=https://me:sentinel@host/a", "name=https://host/a"),
            ("https://host/a#access_token=sentinel", "https://host/a"),
            ("a,http://h/x,http://me:sentinel@h/y?z", "a,http://h/x,http://h/y"),
            ("s3://bucket/a=b", "s3://bucket/a=b"),
            ("s3://bucket/*.txt", "s3://bucket/*.txt"),
            ("https://me:sen,tinel@host/a,s3://b/c", "https://host/a,s3://b/c"),
            ("https://host/a?one=1,sentinel", "https://host/a"),
            ("x=https://me:sentinel@host:port/a", "x=(URL)"),
            ("what?.txt", "what?.txt"),
            ("me:word@host#1", "me:word@host#1"),
            ("a/b", "a/b"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn messages_keep_no_secret() {
        assert_eq!(
            redacted_message("https://me:sentinel@h/x?s=sentinel\nand s3://bucket/x: row #3, what?"),
            "https://h/x\nand s3://bucket/x: row #3, what?"
        );
        assert_eq!(
            without_urls("Error performing GET http://me:sentinel@h/x?s=sentinel in 3s"),
            "Error performing GET (URL) in 3s"
        );
    }
}
