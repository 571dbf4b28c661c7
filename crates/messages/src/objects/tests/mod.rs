mod common;
mod damage;
mod model;
mod puts;
mod reads;
mod rules;
mod uploads;
