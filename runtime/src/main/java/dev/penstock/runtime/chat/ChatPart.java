package dev.penstock.runtime.chat;

/**
 * A part of a chat's text.
 *
 * @param answer whether the assistant says it, so that a model learns to
 */
public record ChatPart(String text, boolean answer) {}
