package dev.penstock.runtime.cli.train;

import com.fasterxml.jackson.annotation.JsonInclude;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataSpec;
import dev.penstock.runtime.data.labelled.LabelledLines;
import dev.penstock.runtime.data.labelled.LabelledRow;
import dev.penstock.runtime.data.labelled.LabelledTexts;
import dev.penstock.runtime.data.labelled.PairEncoder;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.model.shape.EncoderDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.stage.TextClassifier;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a classifier says of the lines of a file.
 *
 * @param accuracy share of the lines whose label it found; null where not every line has one of the
 *     model's
 */
record ClassifiedTexts(
        String model,
        String data,
        List<String> labels,
        List<Text> texts,
        @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable Double accuracy) {
    private static final int TEXTS_OF_A_PASS = 16;

    /** The class of a line, and the probability of every class, likeliest first. */
    record Text(String label, Map<String, Double> probabilities) {}

    /**
     * Classifies a file.
     *
     * @param lines which members of a line are texts, and which its label
     * @param problems found so far; receives what is wrong
     * @return null if anything is
     */
    static @Nullable ClassifiedTexts of(
            TrainedModel model,
            ModelArguments usage,
            Path file,
            LabelledLines lines,
            List<Problem> problems) {
        EncoderDesign encoder = model.shape().block().encoder();
        if (encoder == null || !encoder.classifies()) {
            problems.add(
                    Problem.atOption(
                            "--texts",
                            "a model that classifies texts",
                            "a %s that predicts words".formatted(model.config().family().word()),
                            "leave --texts out, or train one with model.labels"));
            return null;
        }
        Tokenizer tokenizer =
                usage.tokenizerOf(model, model.tokenizer().or(model::tokenizerOfRun), problems);
        PairEncoder pairs = PairEncoder.of(tokenizer);
        if (pairs.vocabulary() > model.shape().vocabulary()) {
            problems.add(
                    Problem.atOption(
                            "--tokenizer",
                            "the tokenizer of a vocabulary of " + model.shape().vocabulary(),
                            "one that needs " + pairs.vocabulary(),
                            "name the one that the model was trained with"));
        }
        List<LabelledLines.Line> read = new ArrayList<>();
        try {
            read.addAll(lines.read(file, false));
        } catch (DataException e) {
            e.problems()
                    .forEach(
                            problem ->
                                    problems.add(
                                            Problem.atOption(
                                                    problem.key().equals("data.field")
                                                            ? "--texts"
                                                            : "--data",
                                                    problem.expected(),
                                                    problem.got(),
                                                    problem.advice())));
        }
        if (!problems.isEmpty()) {
            return null;
        }
        int context = model.contextOfRun().orElse(model.shape().context());
        List<LabelledRow> rows = new ArrayList<>();
        for (LabelledLines.Line line : read) {
            rows.add(pairs.encode(line.texts(), encoder.labels().indexOf(line.label()), context));
        }
        List<Text> texts = classify(model, usage, rows, context, encoder.labels());
        return new ClassifiedTexts(
                model.tensors().path().toString(),
                file.toString(),
                encoder.labels(),
                texts,
                accuracy(rows, texts, encoder.labels()));
    }

    private static List<Text> classify(
            TrainedModel model,
            ModelArguments usage,
            List<LabelledRow> rows,
            int context,
            List<String> labels) {
        ModelShape shape = model.shape().withContext(context);
        int most = Math.min(TEXTS_OF_A_PASS, rows.size());
        LabelledTexts data = LabelledTexts.toClassify(spec(shape, most), rows);
        List<Text> texts = new ArrayList<>();
        DeviceKind kind = usage.device().orElse(DeviceKind.AUTO);
        try (Device device = ConfiguredDevices.of(kind, 1).open(0);
                TextClassifier classifier =
                        TextClassifier.build(shape, most, device, data, model.tensors()::fill)) {
            for (int pass = 0; pass < data.heldOutBatches(); pass++) {
                for (float[] logits : classifier.logits(pass, 0)) {
                    if (texts.size() < rows.size()) {
                        texts.add(text(logits, labels));
                    }
                }
            }
        }
        return texts;
    }

    private static DataSpec spec(ModelShape shape, int texts) {
        return new DataSpec(
                Path.of(""),
                DataFormat.TOKENS,
                "",
                Tokenizer.open("bytes"),
                shape.vocabulary(),
                1,
                shape.context(),
                texts,
                1,
                false,
                1,
                0);
    }

    private static Text text(float[] logits, List<String> labels) {
        double largest = Double.NEGATIVE_INFINITY;
        for (float logit : logits) {
            largest = Math.max(largest, logit);
        }
        double sum = 0;
        for (float logit : logits) {
            sum += Math.exp(logit - largest);
        }
        List<Map.Entry<String, Double>> all = new ArrayList<>();
        for (int i = 0; i < logits.length; i++) {
            all.add(Map.entry(labels.get(i), Math.exp(logits[i] - largest) / sum));
        }
        all.sort(Map.Entry.<String, Double>comparingByValue().reversed());
        Map<String, Double> probabilities = new LinkedHashMap<>();
        all.forEach(each -> probabilities.put(each.getKey(), each.getValue()));
        return new Text(all.getFirst().getKey(), probabilities);
    }

    private static @Nullable Double accuracy(
            List<LabelledRow> rows, List<Text> texts, List<String> labels) {
        int right = 0;
        for (int i = 0; i < rows.size(); i++) {
            if (rows.get(i).label() == LabelledRow.UNKNOWN) {
                return null;
            }
            right += texts.get(i).label().equals(labels.get(rows.get(i).label())) ? 1 : 0;
        }
        return (double) right / rows.size();
    }

    /** A line for each text, likeliest label first, and one for the accuracy. */
    List<String> lines() {
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < texts.size(); i++) {
            StringBuilder line = new StringBuilder();
            line.append(i + 1).append(':');
            texts.get(i)
                    .probabilities()
                    .forEach(
                            (label, share) ->
                                    line.append(
                                            String.format(Locale.ROOT, "  %s %.4f", label, share)));
            lines.add(line.toString());
        }
        if (accuracy != null) {
            lines.add(
                    String.format(
                            Locale.ROOT,
                            "accuracy %.1f %% of %,d texts",
                            100 * accuracy,
                            texts.size()));
        }
        return lines;
    }
}
