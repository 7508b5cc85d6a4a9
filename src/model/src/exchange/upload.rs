//! Prints the requests that upload an exported model to a server.

use serde_json::json;
use std::fmt::Write;

/// What a request needs besides the content of the file.
#[derive(Debug, Clone)]
pub struct Upload<'a> {
    /// Name of the model at the server.
    pub name: &'a str,
    /// Name of the feature set, feature store or collection at the server.
    pub feature_set: &'a str,
    /// Path of the exported file.
    pub file: &'a str,
    /// Kind of the model within its format.
    pub kind: &'a str,
    /// Names of the features at the target.
    pub features: &'a [&'a str],
    /// The content of the file.
    pub content: &'a [u8],
}

/// Quotes an argument for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Encodes a part of a URL's path.
fn path(text: &str) -> String {
    let mut path = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                path.push(char::from(byte))
            }
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
    path
}

fn request(method: &str, url: &str, body: &str) -> String {
    format!("curl -X {method} {} -H 'Content-Type: application/json' {body}\n", quoted(url))
}

/// A body in the command itself.
fn inline(body: &serde_json::Value) -> String {
    format!("--data-binary @- <<'END'\n{body}\nEND")
}

/// A body from the exported file.
fn from_file(upload: &Upload<'_>) -> String {
    format!("--data-binary @{}", quoted(upload.file))
}

/// Requests for the learning-to-rank plugins: the feature set with a query for each feature, then the model.
pub(super) fn plugin(upload: &Upload<'_>) -> String {
    const SERVER: &str = "http://localhost:9200/_ltr";
    let set = path(upload.feature_set);
    // A document without the field does not match, so that its value is missing, not 0.
    let feature = |name: &&str| {
        json!({ "name": name, "params": [], "template_language": "mustache", "template": { "function_score": {
            "query": { "exists": { "field": name } },
            "field_value_factor": { "field": name },
            "boost_mode": "replace",
        } } })
    };
    let features: Vec<_> = upload.features.iter().map(feature).collect();
    let set_body = json!({ "featureset": { "name": upload.feature_set, "features": features } });
    let definition = String::from_utf8_lossy(upload.content);
    let model = json!({ "model": { "name": upload.name, "model": {
        "type": format!("model/{}", upload.kind),
        "definition": definition.trim_end(),
    } } });
    format!(
        "# Each feature reads the field of its name: replace the templates by your own queries.\n{}{}",
        request("PUT", &format!("{SERVER}/_featureset/{set}"), &inline(&set_body)),
        request("POST", &format!("{SERVER}/_featureset/{set}/_createmodel"), &inline(&model)),
    )
}

/// Requests for Solr: the features, then the model.
pub(super) fn solr(upload: &Upload<'_>) -> String {
    let server = format!("http://localhost:8983/solr/{}/schema", path(upload.feature_set));
    let needs_nan = memchr::memmem::find(upload.content, b"isNullSameAsZero").is_some();
    let feature = |name: &&str| match needs_nan {
        true => json!({ "name": name, "class": "org.apache.solr.ltr.feature.FieldValueFeature",
            "params": { "field": name, "defaultValue": "NaN" } }),
        false => json!({ "name": name, "class": "org.apache.solr.ltr.feature.FieldValueFeature",
            "params": { "field": name } }),
    };
    let features: Vec<_> = upload.features.iter().map(feature).collect();
    format!(
        "# Each feature reads the field of its name: replace the classes by your own.\n{}{}",
        request("PUT", &format!("{server}/feature-store"), &inline(&json!(features))),
        request("PUT", &format!("{server}/model-store"), &from_file(upload)),
    )
}

/// The request for Elasticsearch's own learning to rank.
pub(super) fn elastic(upload: &Upload<'_>) -> String {
    request(
        "PUT",
        &format!("http://localhost:9200/_ml/trained_models/{}", path(upload.name)),
        &from_file(upload),
    )
}
