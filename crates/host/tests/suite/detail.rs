//! What a snapshot holds beside row, history and queues, and what deltas tell of it.

use std::time::Duration;

use attache_protocol::{Answer, Command, Mirror, QueueRef, SessionDetail};
use attache_testkit::pass;

use crate::kit::{Line, enqueue, host, life};

/// A viewer's mirror after all that has come.
async fn mirrored(line: &mut Line, mirror: &mut Mirror) -> SessionDetail {
    for frame in line.rest().await {
        mirror.apply(frame);
    }
    mirror.detail.as_deref().cloned().unwrap()
}

async fn attach(line: &mut Line, command: Command) {
    let attached = line.ask(command).await;
    assert!(
        matches!(attached, Ok(Answer::Attached { .. })),
        "{attached:?}"
    );
}

#[test]
fn a_snapshot_tells_who_the_agent_is_and_all_that_belongs_to_it() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        attach(&mut line, Command::attach(id.clone())).await;
        let detail = mirrored(&mut line, &mut Mirror::default()).await;
        let information = detail.information;
        assert_eq!(information.agent_session_id, id);
        assert_eq!(
            information.current_model_id.as_deref(),
            Some("scripted/slow")
        );
        assert!(information.accepts_user_input);
        for text in [
            &information.agent_id,
            &information.name,
            &information.display_name,
            &information.description,
        ] {
            assert!(!text.trim().is_empty());
        }
        let definition = information.agent_definition.unwrap();
        assert!(
            definition["instructions"]
                .as_str()
                .unwrap()
                .contains("capable agent")
        );
        assert_eq!(detail.usage.total_input_token_count, None);
        assert!(detail.tools.iter().all(|tool| tool.enabled));
        let named = |name: &str| detail.tools.iter().find(|tool| tool.name == name).unwrap();
        assert!(!named("read_file").changes_state && named("write_file").changes_state);
        assert!(detail.children.is_empty());
        assert!(detail.retention.continue_in_background);
        assert_eq!(detail.ownership.generation, 1);
        let viewers = detail.viewers.iter();
        let viewers: Vec<_> = viewers.map(|it| (&*it.program, it.read_only)).collect();
        assert_eq!(viewers, [("test", false)]);
    });
}

#[test]
fn deltas_make_of_one_snapshot_what_a_later_one_holds() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        attach(&mut line, Command::attach(id.clone())).await;
        let mut mirror = Mirror::default();
        mirrored(&mut line, &mut mirror).await;
        let (session_id, tool) = (id.clone(), "write_file".to_owned());
        let off = Command::SetToolEnabled {
            session_id,
            tool,
            enabled: false,
        };
        assert_eq!(
            line.ask(off.clone()).await,
            Ok(Answer::Done { changed: true })
        );
        assert_eq!(line.ask(off).await, Ok(Answer::Done { changed: false }));
        let no_tool = Command::SetToolEnabled {
            session_id: id.clone(),
            tool: "fly".to_owned(),
            enabled: false,
        };
        assert_eq!(line.ask(no_tool).await, Err("invalid-arguments".to_owned()));
        let background = Command::SetRetention {
            session_id: id.clone(),
            continue_in_background: false,
        };
        line.ask(background).await.unwrap();
        let delegate = enqueue(&id, QueueRef::Default {}, "delegate it");
        line.ask(delegate).await.unwrap();
        pass(Duration::from_secs(15)).await;
        let mut second = Line::to(&host).await;
        attach(&mut second, Command::look(id.clone())).await;
        let fresh = mirrored(&mut second, &mut Mirror::default()).await;
        let kept = mirrored(&mut line, &mut mirror).await;
        assert_eq!(kept, fresh);
        assert_eq!(kept.children.len(), 1);
        assert!(kept.children[0].held && kept.children[0].call_id.is_some());
        assert_eq!(kept.viewers.len(), 2);
        let off: Vec<_> = kept.tools.iter().filter(|tool| !tool.enabled).collect();
        assert_eq!(off.len(), 1);
        // One is gone without a word, and waited for.
        drop(second);
        let kept = mirrored(&mut line, &mut mirror).await;
        assert!(kept.viewers[1].in_grace);
        pass(Duration::from_secs(5)).await;
        let kept = mirrored(&mut line, &mut mirror).await;
        assert_eq!(kept.viewers.len(), 1);
    });
}

#[test]
fn a_tool_that_is_switched_off_is_no_tool_of_the_next_run() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        let off = Command::SetToolEnabled {
            session_id: id.clone(),
            tool: "agent_session_create".to_owned(),
            enabled: false,
        };
        line.ask(off).await.unwrap();
        attach(&mut line, Command::attach(id.clone())).await;
        let delegate = enqueue(&id, QueueRef::Default {}, "delegate it");
        line.ask(delegate).await.unwrap();
        let mut mirror = Mirror::default();
        let detail = mirrored(&mut line, &mut mirror).await;
        assert!(detail.children.is_empty());
        let results = mirror.items.iter().filter(|item| item.is_error);
        assert_eq!(results.count(), 1, "{:#?}", mirror.items);
    });
}
