//! What a session can know of itself: its entity, its parents', whose it is and what it was
//! started with. Parents are the immediate ones; whoever wants the ancestors walks upwards.

use std::sync::Arc;

use attache_agent::{SessionContext, SessionEntity};
use attache_session::{Json, SessionId};
use attache_store::{Entity, EntityKind, EntityPut, Store};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::ask::Shared;
use crate::clock::Time;
use crate::config::Identity;
use crate::error::EngineError;
use crate::lineage;

/// The entities of the login, the machine and their pair, the same after every restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entities {
    pub(crate) user: Uuid,
    pub(crate) computer: Uuid,
    pub(crate) profile: Uuid,
}

/// Finds or creates the entities of an identity.
pub(crate) async fn identify(
    store: &Arc<dyn Store>,
    time: &Arc<dyn Time>,
    identity: &Identity,
) -> Result<Entities, EngineError> {
    let Identity {
        user,
        computer,
        profile,
    } = identity;
    let login = ensure(
        store,
        time,
        EntityKind::User,
        user,
        json!({ "username": user }),
    )
    .await?;
    let machine = ensure(
        store,
        time,
        EntityKind::Computer,
        computer,
        json!({ "hostname": computer }),
    )
    .await?;
    let pair = profile
        .clone()
        .unwrap_or_else(|| format!("{user}@{computer}"));
    let data = json!({ "user-id": login.to_string(), "computer-id": machine.to_string() });
    let owner = ensure(store, time, EntityKind::Profile, &pair, data).await?;
    Ok(Entities {
        user: login,
        computer: machine,
        profile: owner,
    })
}

async fn ensure(
    store: &Arc<dyn Store>,
    time: &Arc<dyn Time>,
    kind: EntityKind,
    name: &str,
    data: Value,
) -> Result<Uuid, EngineError> {
    if let Some(known) = store.entity_named(kind, name)? {
        return Ok(known.id);
    }
    let put = EntityPut {
        id: time.fresh(),
        kind,
        name: name.to_owned(),
        expected: None,
        at: time.now(),
        change: time.fresh(),
        data: Json::from_checked(data.to_string()),
    };
    Ok(store.put_entity(put).await?.id)
}

/// What `session` can know of itself. A parent list that the host gives wins over the stored one:
/// none falls back to it, an empty one says that there are no parents.
pub(crate) fn of(
    shared: &Shared,
    session: SessionId,
    host_parents: Option<&[SessionId]>,
) -> Result<SessionContext, EngineError> {
    let own = entity_of(shared, session)?;
    let stored = || {
        shared
            .row(session)
            .map(|row| row.map_or_else(Vec::new, |row| row.view.summary.parents.clone()))
    };
    let parent_ids = match host_parents {
        Some(given) => given.to_vec(),
        None => stored()?,
    };
    let mut parents = Vec::with_capacity(parent_ids.len());
    for parent in &parent_ids {
        parents.extend(entity_of(shared, *parent)?);
    }
    let known = |id: Uuid| -> Result<Option<SessionEntity>, EngineError> {
        Ok(shared.config.store.entity(id)?.map(|entity| view(&entity)))
    };
    let Entities {
        user,
        computer,
        profile,
    } = shared.entities;
    Ok(SessionContext {
        definition: match own {
            Some(_) => definition_of(shared, session)?,
            None => None,
        },
        agent_session: own,
        parent_ids: parent_ids.iter().map(ToString::to_string).collect(),
        parents,
        profile: known(profile)?,
        user: known(user)?,
        computer: known(computer)?,
    })
}

fn view(entity: &Entity) -> SessionEntity {
    SessionEntity {
        entity_id: entity.id.to_string(),
        concurrency_tag: entity.tag.to_string(),
        modified_time: entity.modified_at,
        change_id: entity.change.to_string(),
        data: serde_json::from_str(entity.data.as_str()).unwrap_or(Value::Null),
    }
}

/// A session as an entity. Its tag is the position of its newest event, which also names the
/// change.
fn entity_of(shared: &Shared, session: SessionId) -> Result<Option<SessionEntity>, EngineError> {
    let Some(row) = shared.row(session)? else {
        return Ok(None);
    };
    let created = lineage::created(shared, session)?;
    let summary = &row.view.summary;
    let parents: Vec<String> = summary.parents.iter().map(ToString::to_string).collect();
    let data = json!({
        "agent-session-id": session.to_string(),
        "display-name": &*summary.name,
        "agent-definition-name": &*summary.agent,
        "model": &*summary.model,
        "working-directory": &*summary.working_directory,
        "root-agent-session-id": row.root.to_string(),
        "parent-agent-session-ids": parents,
        "owning-profile-id": created.owning_profile.to_string(),
        "ownership-generation": row.generation.0,
        "executor-bindings": serde_json::from_str::<Value>(created.executor_bindings.as_str())
            .unwrap_or(Value::Null),
        "trust-profile": created.trust.map(|(profile, revision)| {
            json!({ "profile-id": profile.to_string(), "expected-revision": revision })
        }),
        "continue-in-background": created.continue_in_background,
        "status": row.status.as_str(),
    });
    let change = Uuid::from_u128(session.0.as_u128() ^ u128::from(row.head.0));
    Ok(Some(SessionEntity {
        entity_id: session.to_string(),
        concurrency_tag: row.head.0.to_string(),
        modified_time: row.last_at,
        change_id: change.to_string(),
        data,
    }))
}

/// The definition as the session was started with it; it changes no more, so its tag is 1 and its
/// id hangs on the session.
fn definition_of(
    shared: &Shared,
    session: SessionId,
) -> Result<Option<SessionEntity>, EngineError> {
    let row = shared.known_row(session)?;
    let created = lineage::created(shared, session)?;
    let id = Uuid::from_u128(session.0.as_u128() ^ 0xdef);
    Ok(Some(SessionEntity {
        entity_id: id.to_string(),
        concurrency_tag: "1".to_owned(),
        modified_time: row.view.summary.created_at,
        change_id: id.to_string(),
        data: serde_json::from_str(created.definition.as_str()).unwrap_or(Value::Null),
    }))
}
