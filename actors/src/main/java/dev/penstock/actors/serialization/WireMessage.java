package dev.penstock.actors.serialization;

/**
 * A message that may leave its process: root of every protocol that the serializer knows. A
 * protocol is a sealed interface that extends this and is listed in {@code
 * penstock.wire.protocols}, or a single record. Its records hold nothing but primitives, strings,
 * enums, durations, primitive arrays, optionals, lists, actor references, other such records and
 * sealed interfaces of them; no nulls. Private records are messages of an actor to itself and never
 * travel.
 */
public interface WireMessage {}
