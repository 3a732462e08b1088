//! The rules of a session, walked through their interface: tables of every allowed and every
//! forbidden step, random sequences, and small worlds searched to their ends.

mod bounds;
mod desk;
mod ends_of_turns;
mod events;
mod ledger;
mod lifecycle;
mod lineage;
mod modals;
mod queues;
mod random;
mod receipts;
mod settings;
mod small_worlds;
mod status;
mod turnless;
mod turns;
mod values;
mod watches;
