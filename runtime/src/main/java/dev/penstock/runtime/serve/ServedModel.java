package dev.penstock.runtime.serve;

import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.tokenizer.Tokenizer;

/**
 * The model that is served.
 *
 * @param name by which requests name it
 * @param vocabulary tokens that the model knows, from 0 on
 * @param context maximum tokens of a prompt
 * @param tokens maximum tokens of a prompt and its continuation
 * @param template of conversations
 */
public record ServedModel(
        String name,
        Tokenizer tokenizer,
        int vocabulary,
        int context,
        int tokens,
        ChatTemplate template) {}
