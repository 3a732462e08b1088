//! `attache token`: who may come to the daemon from elsewhere. What a token allows is the host's business.

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command, TokenScope, TokenView};
use serde_json::{Value, json};

use super::done;
use crate::cli::{ScopeName, Token};
use crate::fail::{Failure, NOT_FOUND};
use crate::find;
use crate::link::Link;
use crate::output::Output;
use crate::safe::in_line;
use crate::tree_view::short;

pub(crate) async fn token(command: Token, output: &Output) -> Result<u8, Failure> {
    let link = Link::daemon_or_in_process().await?;
    let done = match command {
        Token::Create {
            name,
            scope,
            session,
        } => create(&link, name, scope, session, output).await,
        Token::List => list(&link, output).await,
        Token::Revoke { token } => revoke(&link, &token, output).await,
    };
    link.close().await;
    done.map(|()| 0)
}

async fn create(
    link: &Link,
    name: Option<String>,
    scope: ScopeName,
    session: Option<String>,
    output: &Output,
) -> Result<(), Failure> {
    let session_id = match session {
        Some(typed) => Some(find::session(&link.client, &typed).await?.session_id),
        None => None,
    };
    let scope = match scope {
        ScopeName::Read => TokenScope::Read,
        ScopeName::Write => TokenScope::Write,
        ScopeName::Admin => TokenScope::Admin,
    };
    let ask = Command::CreateToken {
        name,
        scope,
        session_id,
    };
    let Answer::TokenMade { token, secret } = link.client.ask(ask).await? else {
        return Err(ClientError::Unexpected.into());
    };
    let mut value = shape(&token);
    value["secret"] = json!(secret);
    output.data(&value, || format!("{secret}\n"));
    if !output.is_json() {
        output.note(&format!(
            "This is the secret of {}, shown this once. {}",
            in_line(&token.name),
            allows(&token)
        ));
    }
    Ok(())
}

/// What a token allows, for people.
fn allows(token: &TokenView) -> String {
    let what = match token.scope {
        TokenScope::Read => "look at",
        TokenScope::Write => "work with",
        TokenScope::Admin => "work with",
    };
    let which = match &token.session_id {
        None => "all sessions".to_owned(),
        Some(session) => format!("session {} and those below it", short(session)),
    };
    let more = match token.scope {
        TokenScope::Admin => ", and make and revoke tokens",
        TokenScope::Read | TokenScope::Write => "",
    };
    format!("Who has it can {what} {which}{more}.")
}

async fn list(link: &Link, output: &Output) -> Result<(), Failure> {
    let Answer::Tokens { tokens } = link.client.ask(Command::ListTokens {}).await? else {
        return Err(ClientError::Unexpected.into());
    };
    let value = Value::Array(tokens.iter().map(shape).collect());
    output.data(&value, || tokens.iter().map(line).collect());
    Ok(())
}

fn line(token: &TokenView) -> String {
    let which = token.session_id.as_deref().map_or("all sessions", short);
    format!(
        "{}  {:5}  {which}  {}  {}\n",
        token.token_id,
        token.scope.as_str(),
        token.created_at,
        in_line(&token.name)
    )
}

async fn revoke(link: &Link, token: &str, output: &Output) -> Result<(), Failure> {
    let ask = Command::RevokeToken {
        token: token.to_owned(),
    };
    if !done(&link.client, ask).await? {
        let text = format!("there is no token {token:?}");
        let failure = Failure::new(NOT_FOUND, "invalid-arguments", text);
        return Err(failure.with_hint("`attache token list` names those that there are."));
    }
    let value = json!({ "token": token, "ok": true });
    output.data(&value, || format!("{} revoked\n", in_line(token)));
    Ok(())
}

/// A token as JSON.
fn shape(token: &TokenView) -> Value {
    let TokenView {
        token_id,
        name,
        scope,
        session_id,
        created_at,
    } = token;
    json!({
        "token_id": token_id, "name": name, "scope": scope.as_str(), "session_id": session_id,
        "created_at": created_at,
    })
}
