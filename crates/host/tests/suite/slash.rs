//! Commands behind a slash: what each says and does, once for each id, and for viewers that only look.

use attache_protocol::{Answer, Command, SLASH_COMMANDS};

use crate::kit::{Line, host, life};

/// What a line is answered.
async fn says(line: &mut Line, id: &str, text: &str) -> Result<(bool, String), String> {
    let typed = Command::SlashCommand {
        session_id: id.to_owned(),
        text: text.to_owned(),
    };
    match line.ask(typed).await? {
        Answer::Slash { known, text } => Ok((known, text)),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn each_command_says_what_it_did_and_does_it() {
    // A line, and what a part of its answer is.
    let table = [
        ("/help", "/terminate  end the session"),
        ("/help tool", "/tool NAME on|off  switch"),
        ("/help fly", "there is no command /fly"),
        ("/model", "the model is scripted/slow"),
        ("/model echo/any", "the next run is with echo/any"),
        ("/model", "the model is echo/any"),
        ("/model echo/any", "already"),
        ("/rename tests of slashes", "is called tests of slashes"),
        ("/background", "goes on when nobody"),
        ("/background off", "ends when its last viewer"),
        ("/background", "ends when its last viewer"),
        ("/tool write_file off", "write_file is switched off"),
        ("/tools", "off write_file"),
        (
            "/tool write_file",
            "it is used like this: /tool NAME on|off",
        ),
        ("/working-directory", "/"),
        ("/queues", "nothing waits"),
        ("/viewers", "test\n"),
        ("/budget", "agents: 0 of 200"),
        ("/budget agents=7", "agents: 0 of 7"),
        ("/interrupt", "nothing ran"),
        ("/interrupt tree", "nothing ran"),
        ("/terminate", "the session is ended"),
        ("/terminate", "was stopped already"),
    ];
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        line.ask(Command::attach(id.clone())).await.unwrap();
        for (typed, part) in table {
            let (known, text) = says(&mut line, &id, typed).await.unwrap();
            assert!(known && text.contains(part), "{typed}: {text:?}");
        }
        for (usage, _) in SLASH_COMMANDS {
            let name = usage.split(' ').next().unwrap();
            let tried = |(line, _): &(&str, &str)| line.split(' ').next() == Some(name);
            assert!(name == "/compact" || table.iter().any(tried), "{usage}");
        }
        let get = Command::GetSession {
            session_id: id.clone(),
        };
        let Ok(Answer::Session { session }) = line.ask(get).await else {
            panic!("no row");
        };
        assert_eq!(
            (&*session.name, &*session.model),
            ("tests of slashes", "echo/any")
        );
        assert!(!session.continue_in_background);
    });
}

#[test]
fn what_is_no_command_is_left_to_the_agent_and_what_cannot_be_is_refused() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        for text in ["/fly", "hello", "/tools\nmore"] {
            assert_eq!(says(&mut line, &id, text).await, Ok((false, String::new())));
        }
        for (text, code) in [
            ("/model nobody/knows", "model-unknown"),
            ("/tool fly on", "invalid-arguments"),
            ("/budget x=1", "invalid-arguments"),
        ] {
            assert_eq!(
                says(&mut line, &id, text).await,
                Err(code.to_owned()),
                "{text}"
            );
        }
    });
}

#[test]
fn who_only_looks_is_told_and_changes_nothing() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create(1).await;
        let mut line = Line::to(&host).await;
        line.ask(Command::look(id.clone())).await.unwrap();
        assert!(says(&mut line, &id, "/tools").await.is_ok());
        let refused = Err("not-permitted".to_owned());
        for text in ["/rename x", "/terminate", "/background off"] {
            assert_eq!(says(&mut line, &id, text).await, refused, "{text}");
        }
    });
}
