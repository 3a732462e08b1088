//! `attache events`: a session's history, page by page, or as it grows.

use attache_client::protocol::{Answer, Command, HistoryItem, HistoryPage, HistoryQuery};
use attache_client::{Client, ClientError, Mirror, Seen};
use serde_json::{Value, json};

use super::{done, session};
use crate::cli::Events;
use crate::fail::Failure;
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
    done(
        &link.client,
        Command::Attach {
            session_id: session_id.clone(),
        },
    )
    .await?;
    let mut after = after;
    let mut mirror = Mirror::default();
    let mut ended = false;
    loop {
        let page = page(&link.client, &session_id, query(after.clone())).await?;
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
            return Ok(0);
        }
        let mut more = false;
        while !more {
            let Some(frame) = link.streams.next().await else {
                return Err(ClientError::Gone("the stream ended".to_owned()).into());
            };
            for seen in mirror.apply(frame) {
                match seen {
                    Seen::Fresh => more = true,
                    Seen::Item { item, .. } => {
                        more |= (kinds.is_empty() || kinds.contains(&item.kind))
                            && after.as_ref().is_none_or(|after| item.at > *after);
                    }
                    Seen::Terminal(_) => (more, ended) = (true, true),
                    _ => {}
                }
            }
        }
    }
}

async fn page(
    client: &Client,
    session_id: &str,
    query: HistoryQuery,
) -> Result<HistoryPage, Failure> {
    let ask = Command::PageHistory {
        session_id: session_id.to_owned(),
        query,
    };
    match client.ask(ask).await? {
        Answer::History { page } => Ok(page),
        _ => Err(ClientError::Unexpected.into()),
    }
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
    format!("{}  {kind}{name}  {text}\n", item.at)
}
