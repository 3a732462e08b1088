//! `attache events`: a session's history, page by page, or as it grows.

use attache_client::protocol::{
    Answer, Command, HistoryItem, HistoryPage, HistoryQuery, PictureView,
};
use attache_client::{Client, ClientError, Mirror, Seen};
use serde_json::{Value, json};

use super::{detach, look, session};
use crate::cli::Events;
use crate::fail::Failure;
use crate::link::Link;
use crate::output::Output;
use crate::shape;

pub(crate) async fn events(events: Events, output: &Output) -> Result<u8, Failure> {
    let Events {
        id,
        after,
        types,
        search,
        limit,
        follow,
    } = events;
    let (mut link, found) = session(&id).await?;
    let session_id = found.session_id;
    let kinds: Vec<_> = types
        .iter()
        .filter_map(|name| shape::kind_of_name(name.as_str()))
        .collect();
    let query = |after| HistoryQuery {
        after,
        kinds: kinds.clone(),
        search: search.clone(),
        limit,
        newest: false,
    };
    if !follow {
        let page = page(&link.client, &session_id, query(after)).await?;
        let value = json!({
            "events": page.items.iter().map(shape::item).collect::<Vec<Value>>(),
            "total_matching": page.total_matching,
            "next_cursor": page.next_cursor,
        });
        output.data(&value, || {
            let mut text: String = page.items.iter().map(line).collect();
            if let Some(cursor) = &page.next_cursor {
                text.push_str(&format!("more: --after {cursor}\n"));
            }
            text
        });
        return Ok(0);
    }
    // Attached first, read then. The stream only tells that there is more; what is shown is always
    // read from the record, so that a viewer who was too slow misses nothing.
    look(&link.client, &session_id).await?;
    let mut after = after;
    let mut mirror = Mirror::default();
    let mut epoch = None;
    let mut ended = false;
    loop {
        let client = link.client.clone();
        let page = page(&client, &session_id, query(after.clone()));
        let page = match link.beside(page).await {
            Ok(page) => page,
            Err(error) => {
                mirror = comes_back(&mut link, error, &session_id, output).await?;
                continue;
            }
        };
        for item in &page.items {
            print(output, item);
        }
        if let Some(last) = page.items.last() {
            after = Some(last.at.clone());
        }
        if page.next_cursor.is_some() {
            continue;
        }
        if ended {
            detach(&mut link, &session_id).await?;
            return Ok(0);
        }
        let mut more = false;
        while !more {
            let Some(frame) = link.next().await else {
                let error = ClientError::Gone(link.client.why_gone());
                mirror = comes_back(&mut link, error, &session_id, output).await?;
                break;
            };
            for seen in mirror.apply(frame) {
                match seen {
                    Seen::Fresh => {
                        let now = mirror.place().and_then(|place| place.epoch);
                        // Its end was told to nobody here.
                        ended |= epoch.is_some() && epoch != now;
                        (more, epoch) = (true, now);
                    }
                    Seen::Item { item, .. } => {
                        more |= (kinds.is_empty() || kinds.contains(&item.kind))
                            && after.as_ref().is_none_or(|after| item.at > *after);
                    }
                    Seen::Terminal(_) => (more, ended) = (true, true),
                    Seen::Lost => drop(client.post(Command::look(&session_id)).await?),
                    Seen::Gap
                    | Seen::Text(_)
                    | Seen::Queues
                    | Seen::Detail
                    | Seen::Asked(_)
                    | Seen::Settled { .. }
                    | Seen::Session(_) => {}
                }
            }
        }
    }
}

/// Looks on over another connection, where the last one was lost on its way to a host elsewhere: what follows is read from
/// where it stood.
async fn comes_back(
    link: &mut Link,
    mut error: ClientError,
    session_id: &str,
    output: &Output,
) -> Result<Mirror, Failure> {
    loop {
        link.again(error, output).await??;
        error = match look(&link.client, session_id).await {
            Ok(()) => return Ok(Mirror::default()),
            Err(error) => error,
        };
    }
}

async fn page(
    client: &Client,
    session_id: &str,
    query: HistoryQuery,
) -> Result<HistoryPage, ClientError> {
    let ask = Command::PageHistory {
        session_id: session_id.to_owned(),
        query,
    };
    match client.ask(ask).await? {
        Answer::History { mut page } => {
            for item in &mut page.items {
                whole(client, session_id, item).await?;
            }
            Ok(page)
        }
        _ => Err(ClientError::Unexpected),
    }
}

/// Reads what an item's text goes on with, when the page has only its beginning.
pub(super) async fn whole(
    client: &Client,
    session_id: &str,
    item: &mut HistoryItem,
) -> Result<(), ClientError> {
    if item.cut {
        let rest = client.rest_of_text(session_id, item.position, item.text.len());
        item.text.push_str(&rest.await?);
        item.cut = false;
    }
    Ok(())
}

fn print(output: &Output, item: &HistoryItem) {
    output.data(&shape::item(item), || line(item));
}

/// An event as a line for people; further lines of its text are set in.
pub(super) fn line(item: &HistoryItem) -> String {
    let kind = shape::kind_name(item.kind);
    let name = item
        .name
        .as_deref()
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    let text = item.text.trim_end().replace('\n', "\n    ");
    let pictures: String = item
        .pictures
        .iter()
        .map(|PictureView { media_type, bytes }| {
            format!("\n    [a picture: {media_type}, {bytes} bytes]")
        })
        .collect();
    format!("{}  {kind}{name}  {text}{pictures}\n", item.at)
}
