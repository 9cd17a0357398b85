package dev.penstock.runtime.launch;

import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.chat.TemplateException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.BatchSection;
import dev.penstock.runtime.config.run.DataSection;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.data.DataSpec;
import dev.penstock.runtime.data.GivenTokens;
import dev.penstock.runtime.data.Marking;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.data.labelled.LabelledTexts;
import dev.penstock.runtime.data.rows.Arrangement;
import dev.penstock.runtime.data.rows.Masking;
import dev.penstock.runtime.data.rows.RowsApart;
import dev.penstock.runtime.lengths.LengthCosts;
import dev.penstock.runtime.lengths.SimulatedArrangement;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The data that a configuration names, opened. */
final class ConfiguredData {
    /** A sequence of one token: the least that data can be asked for. */
    private static final int LEAST_CONTEXT = 1;

    private ConfiguredData() {}

    /**
     * Reads the data. Where the configuration says in a broken key how much is wanted, as little as
     * possible is, so that what is wrong with the files themselves is still found.
     *
     * @param given by the program that trains; null where files have the tokens
     * @param schedule of the run; empty if there is none, and nothing is trained
     * @param draft with a sound source, format, field and tokenizer
     * @throws ConfigException with all problems, at their keys
     */
    static TrainingData open(
            DraftConfig draft, Optional<ProvedSchedule> schedule, @Nullable GivenTokens given) {
        LoadedConfig loaded = draft.draft();
        try {
            DataSpec spec = spec(draft, loaded.config());
            if (loaded.config().data().loss() == DataSection.Loss.LABELS) {
                return LabelledTexts.open(spec, loaded.config().model().labels());
            }
            boolean apart = loaded.config().data().packing().apart();
            return TrainingData.open(
                    apart ? spec.apart(rows(draft, loaded.config(), schedule)) : spec, given);
        } catch (DataException e) {
            throw new ConfigException(
                    e.problems().stream()
                            .filter(problem -> draft.sound(problem.key()))
                            .map(problem -> at(loaded, problem, given != null))
                            .toList());
        } catch (TokenizerFileException e) {
            throw new ConfigException(
                    List.of(
                            loaded.problem(
                                    "data.tokenizer",
                                    e.expected(),
                                    e.path() + ": " + e.got(),
                                    e.advice())));
        }
    }

    private static DataSpec spec(DraftConfig draft, RunConfig config) {
        Tokenizer tokenizer = ConfiguredModel.tokenizer(config);
        var marking =
                new Marking(
                        config.data().packing() != DataSection.Packing.NONE,
                        config.data().loss() == DataSection.Loss.ANSWERS,
                        template(config.data()),
                        masking(draft, config));
        return new DataSpec(
                config.data().source(),
                DataFormat.valueOf(config.data().format().name()),
                config.data().field(),
                tokenizer,
                draft.sound("model.vocabulary")
                        ? ConfiguredModel.vocabulary(config)
                        : Integer.MAX_VALUE,
                draft.sound("data.validation-fraction") ? config.data().validationFraction() : 0,
                draft.sound("model.context") ? config.model().context() : LEAST_CONTEXT,
                config.batch().sequences(),
                config.batch().microBatches(),
                config.batch().last() == BatchSection.Last.SMALLER,
                config.run().steps(),
                config.run().seed(),
                marking,
                Optional.empty());
    }

    /** The words that replace others are the tokenizer's; of tokens from elsewhere, all. */
    private static Optional<Masking> masking(DraftConfig draft, RunConfig config) {
        DataSection data = config.data();
        if (data.loss() != DataSection.Loss.MASKED
                || !draft.sound("data.loss", "data.mask-token", "model.vocabulary")) {
            return Optional.empty();
        }
        int vocabulary = ConfiguredModel.vocabulary(config);
        boolean ofTokenizer =
                data.format() != DataSection.Format.TOKENS
                        && data.format() != DataSection.Format.GIVEN;
        return Optional.of(
                new Masking(
                        data.maskShare(),
                        data.maskToken().orElse(vocabulary - 1),
                        ofTokenizer ? data.tokenizer().vocabulary() : vocabulary));
    }

    private static RowsApart rows(
            DraftConfig draft, RunConfig config, Optional<ProvedSchedule> schedule) {
        boolean padded = config.data().packing() == DataSection.Packing.PADDED;
        BatchSection batch = config.batch();
        boolean known =
                schedule.isPresent()
                        && draft.sound("model", "data.tokenizer", "batch", "pipeline", "device");
        if (padded || !known) {
            return new RowsApart(padded, 1, 1, tokens -> Arrangement.hill(tokens.length));
        }
        GptSettings sizes = ConfiguredModel.sizes(config, schedule.get());
        int shards = sizes.sequence() ? sizes.grid().tensor() : 1;
        return new RowsApart(
                false,
                sizes.batch().lengthStep(batch.lengthStep(), shards),
                sizes.batchesOfStep(),
                arrangement(batch.arrangement(), sizes, schedule.get()));
    }

    private static Arrangement arrangement(
            BatchSection.Arrangement asked, GptSettings sizes, ProvedSchedule schedule) {
        return switch (asked) {
            case HILL -> tokens -> Arrangement.hill(tokens.length);
            case VALLEY -> tokens -> Arrangement.valley(tokens.length);
            case RISING -> tokens -> Arrangement.rising(tokens.length);
            case FALLING -> tokens -> Arrangement.falling(tokens.length);
            case SIMULATED ->
                    new SimulatedArrangement(
                            schedule.training(),
                            schedule.inFlight(),
                            sizes.shape(),
                            sizes.partition(),
                            LengthCosts.whole(sizes.shape(), sizes.partition()));
        };
    }

    private static Optional<ChatTemplate> template(DataSection data) {
        if (data.format() != DataSection.Format.CHAT) {
            return Optional.empty();
        }
        String tokenizer = data.tokenizer().word();
        boolean hasFiles = !Tokenizer.names().contains(tokenizer);
        String word = data.template().word();
        try {
            return Optional.of(ChatTemplate.of(word, hasFiles ? Path.of(tokenizer) : null));
        } catch (TemplateException e) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.template",
                                    "a template that can be read",
                                    word + ": " + e.getMessage(),
                                    "name another, such as chatml")));
        }
    }

    /** Where a program gives the tokens, no key names them. */
    private static Problem at(LoadedConfig loaded, DataProblem problem, boolean given) {
        if (given && problem.key().equals("data.source")) {
            return Problem.atOption(
                    GivenTokens.METHOD, problem.expected(), problem.got(), problem.advice());
        }
        return loaded.problem(problem.key(), problem.expected(), problem.got(), problem.advice());
    }
}
