package dev.penstock.runtime.serve;

import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.Optional;

/**
 * How a conversation is written for a model of which nobody says it: as in the chats of its run,
 * else by the template of its tokenizer's files, else in ChatML if its marks are tokens of the
 * model, else plainly.
 *
 * @param tokenizerName its name or path; empty where nothing says it
 */
public record UsualTemplate(
        TrainedModel model, Optional<String> tokenizerName, Tokenizer tokenizer) {
    private static final String CHATML_MARK = "<|im_start|>";

    /**
     * Opens the template that was asked for, else the usual one.
     *
     * @throws dev.penstock.runtime.chat.TemplateException if it cannot be read
     */
    public ChatTemplate orAsked(Optional<String> asked) {
        return ChatTemplate.of(word(asked), files().orElse(null));
    }

    /** Returns its name. */
    public String word(Optional<String> asked) {
        return asked.or(model::chatTemplateOfRun)
                .or(() -> files().filter(ChatTemplate::isIn).map(_ -> ChatTemplate.OF_TOKENIZER))
                .orElse(tokenizer.encode(CHATML_MARK).length == 1 ? "chatml" : "plain");
    }

    private Optional<Path> files() {
        return tokenizerName.filter(named -> !Tokenizer.names().contains(named)).map(Path::of);
    }
}
