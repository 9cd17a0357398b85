package dev.penstock.runtime.evaluation;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/** Whose rules a figure follows: the same model has other figures by other rules. */
public enum Protocol {
    /** Windows over the text as it is; for texts that have no published protocol. */
    PLAIN("plain"),
    /** NVIDIA's Megatron-LM, {@code tasks/zeroshot_gpt}. */
    MEGATRON("megatron"),
    /** EleutherAI's lm-evaluation-harness. */
    LM_EVAL("lm-eval");

    private final String word;

    Protocol(String word) {
        this.word = word;
    }

    /** Returns the name that users write. */
    public String word() {
        return word;
    }

    static List<String> words() {
        return Arrays.stream(values()).map(Protocol::word).toList();
    }

    static Optional<Protocol> named(String word) {
        return Arrays.stream(values()).filter(each -> each.word.equals(word)).findFirst();
    }
}
