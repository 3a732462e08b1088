//! What a viewer of one session is told beside its row, its history and its queues: who the agent is, what it used, its tools,
//! its children, who looks on, whether it goes on by itself, and whose it is. Each part is replaced as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codec::{DEPTH_LIMIT, depth};
use crate::modal::ModalView;

/// Everything about one attached session that is neither row, history nor queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SessionDetail {
    /// Who the agent is.
    pub information: AgentInformation,
    /// What it used so far.
    pub usage: UsageTotals,
    /// Its tools, in the order in which the model sees them.
    pub tools: Vec<ToolView>,
    /// Its children in the order in which they joined; of very many the newest.
    pub children: Vec<ChildView>,
    /// The questions to a person that are open in it and below it, in the order in which they were asked.
    pub modals: Vec<ModalView>,
    /// Who looks on; of very many those that came first.
    pub viewers: Vec<ViewerView>,
    /// What happens when nobody does any more.
    pub retention: RetentionView,
    /// Whose it is.
    pub ownership: OwnershipView,
}

/// Who an agent is. The first five texts are never blank.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AgentInformation {
    /// The session.
    pub agent_session_id: String,
    /// The agent definition's name, which identifies it in its folder.
    pub agent_id: String,
    /// The session's name among its siblings.
    pub name: String,
    /// The agent's name for people.
    pub display_name: String,
    /// What the agent is for.
    pub description: String,
    /// Whether it takes input.
    pub accepts_user_input: bool,
    /// The model of its next run as `PROVIDER/MODEL`; none where no turns run.
    pub current_model_id: Option<String>,
    /// The whole definition as the session was started, parameters filled in, as a definition's file has it; none where no
    /// frame has room for it.
    pub agent_definition: Option<serde_json::Map<String, serde_json::Value>>,
}

/// Bytes of a definition for which a snapshot can have room.
const DEFINITION_BYTES: usize = 384 * 1024;

/// Levels of a frame around a definition.
const AROUND: usize = 5;

impl AgentInformation {
    /// A definition as a frame has it; none when it is no JSON object, or when no frame has room for it.
    #[must_use]
    pub fn definition(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        let fits = text.len() <= DEFINITION_BYTES && depth(text.as_bytes()) + AROUND <= DEPTH_LIMIT;
        fits.then(|| serde_json::from_str(text).ok()).flatten()
    }
}

/// Totals of a session; null is not reported. None is below zero.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UsageTotals {
    /// Tokens of all prompts, cached ones included.
    pub total_input_token_count: Option<u64>,
    /// Tokens of all answers.
    pub total_output_token_count: Option<u64>,
    /// Prompt tokens read from a cache.
    pub total_cache_read_token_count: Option<u64>,
    /// Prompt tokens written to a cache.
    pub total_cache_write_token_count: Option<u64>,
    /// Tokens of reasoning.
    pub total_reasoning_token_count: Option<u64>,
    /// What it cost in dollars.
    pub total_session_cost_usd: Option<f64>,
}

/// A tool with its switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ToolView {
    /// Its name.
    pub name: String,
    /// The first line of what it is for, cut where it is long.
    pub description: String,
    /// Whether it changes anything outside of the session.
    pub changes_state: bool,
    /// Whether the model is offered it, from the next run on.
    pub enabled: bool,
}

/// A child.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChildView {
    /// The child.
    pub session_id: String,
    /// The call of this session that created it; none where it was acquired.
    pub call_id: Option<String>,
    /// Whether this session holds it; false once it was given up.
    pub held: bool,
}

/// A viewer of the session, the asking one included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ViewerView {
    /// Its number among the attachments of its host: no secret, and never given twice in the host's life.
    pub viewer: u64,
    /// Its name and version.
    pub program: String,
    /// Whether it only looks.
    pub read_only: bool,
    /// Whether its connection is lost and it is waited for.
    pub in_grace: bool,
}

/// What happens when nobody looks on any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RetentionView {
    /// Whether the session goes on.
    pub continue_in_background: bool,
}

/// Whose a session is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OwnershipView {
    /// The entity of the profile that owns it.
    pub owning_profile_id: String,
    /// The number of its owners so far.
    pub generation: u64,
}
