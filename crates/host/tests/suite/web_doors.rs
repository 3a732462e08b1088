//! Who is let in at the listener, and what the others are told.

use std::time::Duration;

use attache_protocol::{Answer, Command, FromHost, QueueRef, TokenScope};
use attache_testkit::pass;

use crate::kit::{Line, enqueue, host, life};
use crate::web_kit::{answer, knock, request, socket, token, wire};

const UPGRADE: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A request as a page or a program writes it.
fn written(line: &str, host: &str, more: &str) -> String {
    format!("{line} HTTP/1.1\r\nhost: {host}\r\n{more}\r\n")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

#[test]
fn g38_a_foreign_page_is_turned_away_before_anything_is_looked_at() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Admin, None).await;
        let right = format!("authorization: Bearer {secret}\r\n");
        let mut seen = Vec::new();
        for (name, origin, foreign) in [
            ("localhost", "origin: https://evil.example\r\n", true),
            ("localhost", "origin: null\r\n", true),
            (
                "localhost",
                "origin: http://localhost.evil.example\r\n",
                true,
            ),
            (
                "localhost",
                "origin: http://localhost\r\norigin: https://evil.example\r\n",
                true,
            ),
            ("evil.example", "", true),
            ("evil.example", "origin: http://evil.example\r\n", true),
            ("localhost:7433", "", false),
            ("127.0.0.1:7433", "origin: http://127.0.0.1:7433\r\n", false),
        ] {
            for (line, token, otherwise) in [
                ("GET /attach", "", "401"),
                ("GET /attach", "authorization: Bearer wrong\r\n", "401"),
                ("GET /attach", &*right, "101"),
                ("POST /attach", "", "401"),
                ("POST /attach", &*right, "426"),
                ("GET /", "", "401"),
                ("GET /", &*right, "404"),
                ("OPTIONS /attach", "", "401"),
            ] {
                let more = format!("{origin}{token}{UPGRADE}");
                let answered = answer(&host, &written(line, name, &more)).await;
                let expected = if foreign { "403" } else { otherwise };
                let case = format!("{line} of {name} with {origin:?} {}", token.len());
                assert_eq!(status(&answered), expected, "{case}: {answered}");
                let head = answered.to_ascii_lowercase();
                assert!(!head.contains("access-control"), "{case}: {answered}");
                if foreign {
                    seen.push(answered);
                }
            }
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "all are told the same: {seen:#?}");
    });
}

#[test]
fn who_brings_no_token_is_told_the_same_bytes_whatever_it_asks_for() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Admin, None).await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let mut seen = Vec::new();
        let one_off = secret[..secret.len() - 1].to_owned() + "g";
        for path in [
            "/attach".to_owned(),
            "/".to_owned(),
            "/mcp".to_owned(),
            format!("/sessions/{id}"),
            format!("/attach?token={secret}"),
            format!("/attach?authorization=Bearer%20{secret}"),
            "/../../etc/passwd".to_owned(),
        ] {
            for more in [
                String::new(),
                "authorization: Bearer \r\n".to_owned(),
                format!("authorization: Bearer {one_off}\r\n"),
                format!("authorization: Basic {secret}\r\n"),
                format!("authorization: {secret}\r\n"),
                format!("cookie: token={secret}\r\n"),
                format!("sec-websocket-protocol: attache.v1, attache.bearer.{one_off}\r\n"),
                format!("sec-websocket-protocol: attache.v1, {secret}\r\n"),
            ] {
                for method in ["GET", "POST", "DELETE"] {
                    let line = format!("{method} {path}");
                    let more = format!("{more}{UPGRADE}");
                    seen.push(answer(&host, &written(&line, "localhost", &more)).await);
                }
            }
        }
        assert_eq!(status(&seen[0]), "401");
        seen.dedup();
        assert_eq!(seen.len(), 1, "{seen:#?}");
    });
}

#[test]
fn a_page_may_bring_its_token_as_a_subprotocol_and_is_answered_by_the_other_one() {
    life(async {
        let host = host().await;
        let secret = token(&host, TokenScope::Read, None).await;
        let protocols = format!("attache.v1, attache.bearer.{secret}");
        let more = format!("sec-websocket-protocol: {protocols}\r\n{UPGRADE}");
        let answered = answer(&host, &written("GET /attach", "localhost", &more)).await;
        assert_eq!(status(&answered), "101", "{answered}");
        assert!(
            answered.contains("sec-websocket-protocol: attache.v1\r\n"),
            "{answered}"
        );
        assert!(!answered.contains(&secret), "{answered}");
        let with = |value: &str| {
            request(
                "ws://localhost/attach",
                &[("sec-websocket-protocol", value)],
            )
        };
        let there = knock(wire(&host), with(&protocols)).await.unwrap();
        let mut line = Line::over(there).await;
        assert!(line.ask(Command::HostStatus {}).await.is_ok());
        // Only the token: nothing is left to be spoken.
        let alone = with(&format!("attache.bearer.{secret}"));
        assert_eq!(knock(wire(&host), alone).await.err(), Some(400));
    });
}

#[test]
fn a_token_that_is_revoked_ends_its_connections_at_once_and_lets_nobody_in() {
    life(async {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let secret = token(&host, TokenScope::Write, None).await;
        let other = token(&host, TokenScope::Read, None).await;
        let mut one = socket(&host, &secret).await;
        let mut two = socket(&host, &secret).await;
        let mut kept = socket(&host, &other).await;
        one.ask(Command::attach(id.clone())).await.unwrap();
        one.rest().await;
        let revoke = Command::RevokeToken {
            token: "token-1".to_owned(),
        };
        assert_eq!(
            owner.ask(revoke.clone()).await,
            Ok(Answer::Done { changed: true })
        );
        assert_eq!(owner.ask(revoke).await, Ok(Answer::Done { changed: false }));
        owner
            .ask(enqueue(&id, QueueRef::Default {}, "one"))
            .await
            .unwrap();
        for line in [&mut one, &mut two] {
            let FromHost::OperationError {
                command_id: None,
                error,
            } = line.hear().await
            else {
                panic!("it is told why");
            };
            assert_eq!(error.code, "not-permitted");
            assert_eq!(line.hear_bytes().await, None, "and nothing more");
        }
        let bearer = format!("Bearer {secret}");
        let again = request("ws://localhost/attach", &[("authorization", &bearer)]);
        assert_eq!(knock(wire(&host), again).await.err(), Some(401));
        assert!(kept.ask(Command::HostStatus {}).await.is_ok());
    });
}

#[test]
fn one_that_reads_nothing_is_cut_off_all_the_same() {
    life(async {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let secret = token(&host, TokenScope::Read, None).await;
        let mut stalled = socket(&host, &secret).await;
        stalled.ask(Command::attach(id.clone())).await.unwrap();
        let long = format!("long {}", "x".repeat(200 * 1024));
        owner
            .ask(enqueue(&id, QueueRef::Default {}, &long))
            .await
            .unwrap();
        owner.rest().await;
        drop(owner);
        assert!(!host.is_idle());
        let mut owner = Line::to(&host).await;
        let revoke = Command::RevokeToken {
            token: "token-1".to_owned(),
        };
        owner.ask(revoke).await.unwrap();
        drop(owner);
        // Its attachment waits a while for somebody who may come back.
        pass(Duration::from_secs(7)).await;
        assert!(host.is_idle(), "nobody is connected any more");
    });
}

#[test]
fn tokens_are_made_listed_and_revoked_by_who_may_and_their_secrets_are_not_told_again() {
    life(async {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let create = |name: Option<&str>, scope, session: Option<&str>| Command::CreateToken {
            name: name.map(str::to_owned),
            scope,
            session_id: session.map(str::to_owned),
        };
        let admin = token(&host, TokenScope::Admin, None).await;
        let mut elsewhere = socket(&host, &admin).await;
        let made = elsewhere
            .ask(create(Some("phone"), TokenScope::Write, Some(&id)))
            .await
            .unwrap();
        let Answer::TokenMade { token, secret } = made else {
            panic!("{made:?}");
        };
        assert_eq!(token.session_id.as_deref(), Some(&*id));
        let listed = elsewhere.ask(Command::ListTokens {}).await.unwrap();
        let shown = format!("{listed:?}");
        assert!(
            shown.contains("phone") && !shown.contains(&secret),
            "{shown}"
        );
        for (bad, code) in [
            (
                create(Some("phone"), TokenScope::Read, None),
                "invalid-arguments",
            ),
            (
                create(Some(""), TokenScope::Read, None),
                "invalid-arguments",
            ),
            (
                create(None, TokenScope::Admin, Some(&id)),
                "invalid-arguments",
            ),
            (
                create(None, TokenScope::Read, Some("nothing")),
                "unknown-session",
            ),
        ] {
            assert_eq!(elsewhere.ask(bad).await, Err(code.to_owned()));
        }
        let mut confined = socket(&host, &secret).await;
        for refused in [create(None, TokenScope::Read, None), Command::ListTokens {}] {
            let refused = confined.ask(refused).await;
            assert_eq!(refused, Err("not-permitted".to_owned()));
        }
    });
}
