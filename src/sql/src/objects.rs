//! Looks up files in the object stores of the engine.

use super::error::to_engine_error;
use datafusion::catalog::Session;
use datafusion::common::Result as EngineResult;
use datafusion::datasource::listing::ListingTableUrl;
use futures::stream::{StreamExt, TryStreamExt, iter};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::sync::Arc;
use url::Url;

/// Number of files that are looked up or opened at the same time.
pub(crate) const LOOKUPS: usize = 16;

/// Returns the URLs of files, and makes their object stores known to the engine.
pub(crate) fn urls_of(state: &dyn Session, locations: &[Location]) -> EngineResult<Vec<ListingTableUrl>> {
    let mut urls = Vec::with_capacity(locations.len());
    for location in locations {
        let url = url_of(location).map_err(to_engine_error)?;
        if let Some((store, _)) = location.object() {
            state.runtime_env().register_object_store(&url, store.clone());
        }
        urls.push(ListingTableUrl::try_new(url, None)?);
    }
    Ok(urls)
}

/// Returns a file as the engine needs it, or `None` if it is empty.
pub(crate) async fn object_at(
    state: &dyn Session,
    url: &ListingTableUrl,
) -> EngineResult<Option<(Arc<dyn ObjectStore>, ObjectMeta)>> {
    let store = state.runtime_env().object_store(url)?;
    let object = store.head(url.prefix()).await?;
    Ok((object.size > 0).then_some((store, object)))
}

/// Returns files as the engine needs them, in the same order. Empty ones are `None`.
pub(crate) async fn objects_at(
    state: &dyn Session,
    urls: &[ListingTableUrl],
) -> EngineResult<Vec<Option<ObjectMeta>>> {
    let lookups: Vec<_> = urls.iter().map(|url| object_at(state, url)).collect();
    let found: Vec<_> = iter(lookups).buffered(LOOKUPS).try_collect().await?;
    Ok(found.into_iter().map(|found| found.map(|(_, object)| object)).collect())
}

fn url_of(location: &Location) -> Result<Url> {
    let url = match location {
        Location::Local(path) => {
            let path = path.canonicalize().map_err(|error| Error::io(location, "open", error))?;
            Url::from_file_path(path).ok()
        }
        Location::Remote(_) => Url::parse(&location.to_string()).ok(),
    };
    url.ok_or_else(|| Error::place(location, "the name is not a valid URL", "rename the file"))
}
