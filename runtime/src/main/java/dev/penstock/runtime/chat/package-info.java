/**
 * Chats as text: templates in a part of Jinja's language, and which of the text is an answer. Start
 * with {@link dev.penstock.runtime.chat.ChatTemplate}.
 */
@NullMarked
package dev.penstock.runtime.chat;

import org.jspecify.annotations.NullMarked;
