//! `attache doctor`: the settings in force with where each came from, and what a run needs.

use std::os::unix::fs::DirBuilderExt;

use attache_client::protocol::{Answer, Command};
use attache_host::{Finding, Settings, check_model};
use serde_json::{Value, json};

use crate::fail::{FAILED, Failure};
use crate::link::{self, Link};
use crate::output::Output;
use crate::places::Places;

/// Variables that hold keys of presets.
const KEYS: [&str; 5] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "AZURE_OPENAI_API_KEY",
];

/// One thing that was looked at.
struct Check {
    name: String,
    ok: bool,
    detail: String,
    hint: Option<String>,
}

pub(crate) async fn doctor(
    asked: Option<String>,
    offline: bool,
    output: &Output,
) -> Result<u8, Failure> {
    let places = Places::find()?;
    let folder = link::working_directory()?;
    let environment = attache_host::environment(link::environment(), &link::key_variables());
    let settings_file = places.settings_file();
    let settings = Settings::load(Some(&settings_file), Some(&folder), &environment);
    let mut checks = vec![state(&places)];
    let daemon = daemon().await;
    checks.extend(daemon.is_none().then(|| store(&places)));
    checks.push(daemon.unwrap_or_else(|| Check {
        name: "daemon".to_owned(),
        ok: true,
        detail: "none runs; one is started on demand".to_owned(),
        hint: None,
    }));
    let mut effective = Vec::new();
    match settings {
        Ok(settings) => {
            checks.push(model(&settings));
            if let Some(name) = asked.or_else(|| settings.model.clone())
                && !offline
            {
                let found = check_model(&settings, &environment, &folder, &name).await;
                checks.extend(found.into_iter().map(|finding| of_model(&name, finding)));
            }
            effective = settings.effective;
        }
        Err(error) => checks.push(Check {
            name: "settings".to_owned(),
            ok: false,
            detail: error.to_string(),
            hint: Some("Mend the setting at the named place.".to_owned()),
        }),
    }
    for variable in KEYS {
        let set = environment
            .get(variable)
            .is_some_and(|value| !value.is_empty());
        checks.push(Check {
            name: variable.to_owned(),
            ok: true,
            detail: if set { "set" } else { "not set" }.to_owned(),
            hint: None,
        });
    }
    let all_ok = checks.iter().all(|check| check.ok);
    let value = json!({
        "state_folder": places.state.display().to_string(),
        "socket": places.socket.display().to_string(),
        "settings_file": settings_file.display().to_string(),
        "settings": effective
            .iter()
            .map(|one| json!({ "key": one.key, "value": one.value, "source": one.source.to_string() }))
            .collect::<Vec<Value>>(),
        "checks": checks
            .iter()
            .map(|one| json!({
                "name": one.name, "ok": one.ok, "detail": one.detail, "hint": one.hint,
            }))
            .collect::<Vec<Value>>(),
    });
    output.data(&value, || {
        let mut text = format!(
            "state folder  {}\nsocket        {}\nsettings      {}\n\n",
            places.state.display(),
            places.socket.display(),
            settings_file.display()
        );
        for one in &effective {
            text.push_str(&format!("{} = {}  ({})\n", one.key, one.value, one.source));
        }
        text.push('\n');
        for one in &checks {
            let mark = if one.ok { "ok  " } else { "FAIL" };
            text.push_str(&format!("{mark}  {}: {}\n", one.name, one.detail));
            if let Some(hint) = &one.hint {
                text.push_str(&format!("      {hint}\n"));
            }
        }
        text
    });
    Ok(if all_ok { 0 } else { FAILED })
}

fn state(places: &Places) -> Check {
    let folder = &places.state;
    let mut maker = std::fs::DirBuilder::new();
    let made = maker.recursive(true).mode(0o700).create(folder);
    let made = made.and_then(|()| {
        let probe = folder.join(format!("probe-{}", std::process::id()));
        std::fs::write(&probe, b"probe")?;
        std::fs::remove_file(&probe)
    });
    Check {
        name: "state folder".to_owned(),
        ok: made.is_ok(),
        detail: match &made {
            Ok(()) => "can be written".to_owned(),
            Err(fault) => format!("{}: {fault}", folder.display()),
        },
        hint: made
            .is_err()
            .then(|| "Set ATTACHE_HOME to a folder that you may write.".to_owned()),
    }
}

/// The store, while no daemon answers for it.
fn store(places: &Places) -> Check {
    let checked = attache_host::check_store(&places.state);
    Check {
        name: "store".to_owned(),
        ok: checked.is_ok(),
        detail: match &checked {
            Ok(()) => "can be opened".to_owned(),
            Err(error) => error.to_string(),
        },
        hint: checked.is_err().then(|| {
            "If another process uses it, end that one or use another ATTACHE_HOME; if it is damaged, \
             restore the state folder from a copy."
                .to_owned()
        }),
    }
}

/// The daemon, if one runs.
async fn daemon() -> Option<Check> {
    let (ok, detail) = match Link::running_daemon().await {
        Ok(None) => return None,
        Ok(Some(link)) => match link.client.ask(Command::HostStatus {}).await {
            Ok(Answer::Host { host }) => (
                true,
                format!(
                    "{}, process {}, {} live sessions, {} at work",
                    host.program, host.process_id, host.live_sessions, host.busy_sessions
                ),
            ),
            Ok(_) => (
                false,
                "it answered something else than was asked".to_owned(),
            ),
            Err(error) => (false, error.to_string()),
        },
        Err(failure) => (false, failure.message),
    };
    Some(Check {
        name: "daemon".to_owned(),
        ok,
        detail,
        hint: (!ok).then(|| "`attache restart` ends it and starts a new one.".to_owned()),
    })
}

/// What was found of a model, as a line.
fn of_model(model: &str, finding: Finding) -> Check {
    let Finding {
        what,
        ok,
        detail,
        hint,
    } = finding;
    Check {
        name: format!("{model}: {what}"),
        ok,
        detail,
        hint,
    }
}

fn model(settings: &Settings) -> Check {
    match &settings.model {
        Some(model) => Check { name: "model".to_owned(), ok: true, detail: model.clone(), hint: None },
        None => Check {
            name: "model".to_owned(),
            ok: true,
            detail: "none is chosen".to_owned(),
            hint: Some(
                "Pass --model PROVIDER/MODEL, set ATTACHE_MODEL, or put `model = \"PROVIDER/MODEL\"` \
                 into the settings. `attache demo` and `--model echo/any` need none; `attache doctor --model PROVIDER/MODEL` \
                 tries one."
                    .to_owned(),
            ),
        },
    }
}
