package dev.penstock.runtime.evaluation;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** What is measured. */
public enum TaskKind {
    /** Perplexity of any text. */
    TEXT,
    /** Perplexity of WikiText, whose tokens are set apart by blanks. */
    WIKITEXT,
    /** The last word of a passage. */
    LAMBADA,
    /** The best of several endings: HellaSwag, PIQA. */
    CHOICES;

    /** Returns the protocols that it has, at least one. */
    public List<Protocol> protocols() {
        return switch (this) {
            case TEXT -> List.of(Protocol.PLAIN);
            case WIKITEXT, LAMBADA -> List.of(Protocol.MEGATRON, Protocol.LM_EVAL);
            case CHOICES -> List.of(Protocol.LM_EVAL);
        };
    }

    /** Returns the name that users write. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }

    static List<String> words() {
        return Arrays.stream(values()).map(TaskKind::word).toList();
    }

    static Optional<TaskKind> named(String word) {
        return Arrays.stream(values()).filter(each -> each.word().equals(word)).findFirst();
    }
}
