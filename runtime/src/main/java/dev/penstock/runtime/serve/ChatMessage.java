package dev.penstock.runtime.serve;

/**
 * A message of a conversation.
 *
 * @param role such as system, user or assistant
 */
public record ChatMessage(String role, String content) {}
