package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Whose rules a figure follows: the same model has other figures by other rules. */
public enum Protocol {
    /** Windows over the text as it is; for texts that have no published protocol. */
    PLAIN("plain") {
        @Override
        List<TaskText> read(
                TaskKind task,
                TaskFiles files,
                List<Path> paths,
                Tokenizer tokenizer,
                int context,
                int stride) {
            throw new IllegalStateException("a text is read as a whole");
        }

        @Override
        Map<String, Number> measures(TaskKind task, Tally tally) {
            return TextTask.measures(tally);
        }

        @Override
        boolean overlaps(TaskKind task) {
            return true;
        }
    },
    /** NVIDIA's Megatron-LM, {@code tasks/zeroshot_gpt}. */
    MEGATRON("megatron") {
        @Override
        List<TaskText> read(
                TaskKind task,
                TaskFiles files,
                List<Path> paths,
                Tokenizer tokenizer,
                int context,
                int stride) {
            return switch (task) {
                case WIKITEXT -> WikitextTask.megatron(files, paths, tokenizer, context, stride);
                case LAMBADA -> LambadaTask.megatron(files, paths, tokenizer, context);
                case TEXT, CHOICES -> throw notOf(task);
            };
        }

        @Override
        Map<String, Number> measures(TaskKind task, Tally tally) {
            return switch (task) {
                case WIKITEXT -> WikitextTask.megatronMeasures(tally);
                case LAMBADA -> LambadaTask.megatronMeasures(tally);
                case TEXT, CHOICES -> throw notOf(task);
            };
        }

        @Override
        boolean overlaps(TaskKind task) {
            return task == TaskKind.WIKITEXT;
        }
    },
    /** EleutherAI's lm-evaluation-harness. */
    LM_EVAL("lm-eval") {
        @Override
        List<TaskText> read(
                TaskKind task,
                TaskFiles files,
                List<Path> paths,
                Tokenizer tokenizer,
                int context,
                int stride) {
            return switch (task) {
                case WIKITEXT -> WikitextTask.lmEval(files, paths, tokenizer, context);
                case LAMBADA -> LambadaTask.lmEval(files, paths, tokenizer, context);
                case CHOICES -> ChoicesTask.lmEval(files, paths, tokenizer, context);
                case TEXT -> throw notOf(task);
            };
        }

        @Override
        Map<String, Number> measures(TaskKind task, Tally tally) {
            return switch (task) {
                case WIKITEXT -> WikitextTask.lmEvalMeasures(tally);
                case LAMBADA -> LambadaTask.lmEvalMeasures(tally);
                case CHOICES -> ChoicesTask.measures(tally);
                case TEXT -> throw notOf(task);
            };
        }

        @Override
        boolean overlaps(TaskKind task) {
            return false;
        }
    };

    private final String word;

    Protocol(String word) {
        this.word = word;
    }

    /**
     * Reads the files of one of its tasks.
     *
     * @param stride tokens from one window to the next, where they may overlap
     */
    abstract List<TaskText> read(
            TaskKind task,
            TaskFiles files,
            List<Path> paths,
            Tokenizer tokenizer,
            int context,
            int stride);

    /** Returns the figures of one of its tasks. */
    abstract Map<String, Number> measures(TaskKind task, Tally tally);

    /** Returns whether windows of one of its tasks may overlap. */
    abstract boolean overlaps(TaskKind task);

    IllegalStateException notOf(TaskKind task) {
        return new IllegalStateException("%s has no protocol %s".formatted(task, word));
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
