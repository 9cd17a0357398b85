package dev.penstock.runtime.config.run;

import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigUtil;
import com.typesafe.config.ConfigValue;
import com.typesafe.config.ConfigValueType;
import dev.penstock.runtime.config.links.Bandwidth;
import dev.penstock.runtime.config.links.FrameLoss;
import dev.penstock.runtime.config.links.LinkEntry;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.LayerList;
import dev.penstock.runtime.config.reading.Mismatch;
import dev.penstock.runtime.config.reading.NearWord;
import dev.penstock.runtime.config.reading.Places;
import dev.penstock.runtime.config.reading.Range;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.config.reading.Worded;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * How values of one Java type are written in a configuration.
 *
 * @param noun what a value is called in a message: {@code an integer, at least 1}
 * @param read takes a value apart or throws a {@link Mismatch}
 * @param write gives text that reads back to the same value
 */
public record ValueType<T>(
        String noun, BiFunction<ConfigValue, Places, T> read, Function<T, String> write) {

    /** The type of a record component that is declared with {@code setting}. */
    public static ValueType<?> of(Type type, Setting setting) {
        if (type instanceof ParameterizedType generic) {
            ValueType<?> inner = of(generic.getActualTypeArguments()[0], setting);
            return generic.getRawType() == Optional.class
                    ? optional(inner, setting.word())
                    : list(inner);
        }
        return of((Class<?>) type, setting);
    }

    private static ValueType<?> of(Class<?> type, Setting setting) {
        if (type == int.class || type == Integer.class) {
            return ranged(INTEGER, setting, MOST);
        } else if (type == long.class) {
            return ranged(LONG, setting);
        } else if (type == double.class || type == Double.class) {
            return ranged(NUMBER, setting);
        } else if (type == boolean.class) {
            return BOOLEAN;
        } else if (type == String.class) {
            return TEXT;
        } else if (type == Duration.class) {
            return ranged(DURATION, setting);
        } else if (type == Bytes.class) {
            return ranged(BYTES, setting);
        } else if (type == Bandwidth.class) {
            return ranged(BANDWIDTH, setting);
        } else if (type == FrameLoss.class) {
            return ranged(LOSS, setting);
        } else if (type == LinkEntry.class) {
            return members(LinkEntry.class);
        } else if (type == DeviceKind.class) {
            return DEVICE;
        } else if (type == OptimizerSection.LossScale.class) {
            return LOSS_SCALE;
        } else if (type == DataSection.Tokenizer.class) {
            return TOKENIZER;
        } else if (type == EvaluationTask.class) {
            return TASK;
        } else if (type == SliceLengths.class) {
            return ruleOrList(
                    SliceLengths.Rule.values(),
                    SliceLengths.Given::new,
                    given -> given instanceof SliceLengths.Given(var tokens) ? tokens : null,
                    setting);
        } else if (type == PipelineSection.Partition.class) {
            return ruleOrList(
                    PipelineSection.Partition.Rule.values(),
                    PipelineSection.Partition.Given::new,
                    given ->
                            given instanceof PipelineSection.Partition.Given(var counts)
                                    ? counts
                                    : null,
                    setting);
        } else if (type == Recompute.class) {
            return ruleOrList(
                    Recompute.Rule.values(),
                    Recompute.Given::new,
                    given -> given instanceof Recompute.Given(var blocks) ? blocks : null,
                    setting);
        } else if (type == Offload.class) {
            return ruleOrList(
                    Offload.Rule.values(),
                    Offload.Given::new,
                    given -> given instanceof Offload.Given(var stages) ? stages : null,
                    setting);
        } else if (type == LayerList.class) {
            return layers(ranged(INTEGER, setting, MOST));
        } else if (type == ParallelSection.Shards.class) {
            return countOrList(ranged(INTEGER, setting, MOST));
        } else if (type == Path.class) {
            return setting.output() ? OUTPUT_PATH : INPUT_PATH;
        }
        return choice(type.getEnumConstants());
    }

    /** Reads a default or a bound, which are written in the source. */
    T parse(String text) {
        ConfigValue value = ConfigFactory.parseString("v = " + text).getValue("v");
        return read.apply(value, new Places(Path.of(""), Path.of("")));
    }

    @SuppressWarnings("unchecked") // a value of this type's own key
    String written(Object value) {
        return write.apply((T) value);
    }

    /** Of counts that have no limit of their own: sums and products of a few do not overflow. */
    private static final Integer MOST = 1_000_000_000;

    private static final ValueType<Integer> INTEGER =
            new ValueType<>(
                    "an integer", (v, p) -> number(v, BigDecimal::intValueExact), n -> n + "");
    private static final ValueType<Long> LONG =
            new ValueType<>(
                    "an integer", (v, p) -> number(v, BigDecimal::longValueExact), n -> n + "");
    private static final ValueType<Double> NUMBER =
            new ValueType<>(
                    "a number",
                    (v, p) -> number(v, BigDecimal::doubleValue),
                    n -> BigDecimal.valueOf(n).stripTrailingZeros().toString());
    private static final ValueType<Boolean> BOOLEAN =
            new ValueType<>(
                    "true or false",
                    (v, p) -> lenient(() -> v.atKey("v").getBoolean("v")),
                    b -> b + "");
    private static final ValueType<String> TEXT =
            new ValueType<>(
                    "text",
                    (v, p) -> lenient(() -> v.atKey("v").getString("v")),
                    ConfigUtil::quoteString);
    private static final ValueType<Bytes> BYTES =
            new ValueType<>(
                    "a size such as 8 MiB",
                    (v, p) -> lenient(() -> new Bytes(v.atKey("v").getBytes("v"))),
                    Bytes::toString);
    private static final ValueType<Duration> DURATION =
            new ValueType<>("a duration such as 5 s", (v, p) -> duration(v), ValueType::seconds);
    private static final ValueType<Bandwidth> BANDWIDTH =
            new ValueType<>(
                    "a bandwidth such as 100 Mbit/s",
                    (v, p) -> lenient(() -> Bandwidth.parse(v.atKey("v").getString("v"))),
                    Bandwidth::toString);
    private static final ValueType<FrameLoss> LOSS =
            new ValueType<>(
                    "a share such as 1 %",
                    (v, p) -> lenient(() -> FrameLoss.parse(v.atKey("v").getString("v"))),
                    FrameLoss::toString);
    private static final ValueType<DeviceKind> DEVICE =
            new ValueType<>(
                    "one of auto, cpu, reference, cuda, or a GPU such as \"cuda:1\"",
                    (v, p) -> device(v.unwrapped().toString()),
                    kind -> ConfigUtil.quoteString(kind.word()));
    private static final ValueType<OptimizerSection.LossScale> LOSS_SCALE =
            new ValueType<>(
                    "one of none, dynamic, or a power of two from 1 to 2^126",
                    (v, p) -> lossScale(v.unwrapped().toString()),
                    OptimizerSection.LossScale::word);
    private static final ValueType<Path> OUTPUT_PATH =
            new ValueType<>(
                    "a path",
                    (v, p) -> Places.path(lenient(() -> v.atKey("v").getString("v"))),
                    path -> ConfigUtil.quoteString(path.toString()));
    private static final ValueType<Path> INPUT_PATH =
            new ValueType<>(
                    "a path to something that exists",
                    (v, p) -> {
                        if (v.unwrapped() instanceof List
                                || v.valueType() == ConfigValueType.OBJECT) {
                            throw new Mismatch();
                        }
                        return p.existing(v);
                    },
                    path -> ConfigUtil.quoteString(path.toString()));

    private static final ValueType<DataSection.Tokenizer> TOKENIZER =
            new ValueType<>(
                    "one of %s, or a path to a tokenizer's files"
                            .formatted(String.join(", ", Tokenizer.names())),
                    ValueType::tokenizer,
                    tokenizer ->
                            Tokenizer.names().contains(tokenizer.word())
                                    ? tokenizer.word()
                                    : ConfigUtil.quoteString(tokenizer.word()));

    private static final ValueType<EvaluationTask> TASK =
            new ValueType<>(EvaluationTask.FORM, EvaluationTask::read, EvaluationTask::written);

    /** Its tokens are counted here: the model's size follows from them. */
    private static DataSection.Tokenizer tokenizer(ConfigValue value, Places places) {
        String word = value.unwrapped().toString();
        if (!Tokenizer.names().contains(word)) {
            word = tokenizerPath(value, places).toString();
        }
        try {
            return new DataSection.Tokenizer(word, Tokenizer.vocabularyOf(word));
        } catch (TokenizerFileException e) {
            throw new Mismatch(
                    "%s, where it has to be %s but is %s"
                            .formatted(e.path(), e.expected(), e.got()),
                    e.advice());
        }
    }

    private static Path tokenizerPath(ConfigValue value, Places places) {
        try {
            return INPUT_PATH.read.apply(value, places);
        } catch (Mismatch nothingThere) {
            throw NearWord.among(Tokenizer.names(), value.unwrapped().toString())
                    .map(word -> new Mismatch("", "did you mean " + word + "?"))
                    .orElse(nothingThere);
        }
    }

    private static DeviceKind device(String word) {
        if (!DeviceKind.isKind(word)) {
            throw new Mismatch();
        }
        return new DeviceKind(word);
    }

    private static OptimizerSection.LossScale lossScale(String word) {
        if (!OptimizerSection.LossScale.isScale(word)) {
            throw new Mismatch();
        }
        return new OptimizerSection.LossScale(word);
    }

    private static <T extends Comparable<T>> ValueType<T> ranged(
            ValueType<T> type, Setting setting) {
        return ranged(type, setting, null);
    }

    /**
     * @param most where the setting has no upper limit of its own; null: none
     */
    private static <T extends Comparable<T>> ValueType<T> ranged(
            ValueType<T> type, Setting setting, @Nullable T most) {
        Range<T> range = Range.parse(setting.range(), type::parse);
        String limits = range.describe(type.write);
        return new ValueType<>(
                limits.isEmpty() ? type.noun : type.noun + ", " + limits,
                (value, places) -> {
                    if (most != null && range.high() == null) {
                        requireAtMost(most.toString(), value);
                    }
                    T read = type.read.apply(value, places);
                    if (!range.contains(read)) {
                        throw new Mismatch();
                    }
                    return read;
                },
                type.write);
    }

    private static <T> ValueType<Optional<T>> optional(ValueType<T> inner, String word) {
        return new ValueType<>(
                word + ", or " + inner.noun,
                (value, places) ->
                        value.unwrapped().equals(word)
                                ? Optional.empty()
                                : Optional.of(inner.read.apply(value, places)),
                value -> value.map(inner.write).orElse(word));
    }

    /** How many layers, or the kind of each. */
    private static ValueType<LayerList> layers(ValueType<Integer> count) {
        ValueType<List<String>> kinds = list(TEXT);
        return new ValueType<>(
                count.noun + ", or a list of kinds: dense, local(N), retention, \"3 x (..)\"",
                (value, places) ->
                        value.valueType() == ConfigValueType.LIST
                                ? LayerList.of(kinds.read.apply(value, places))
                                        .orElseThrow(
                                                () ->
                                                        new Mismatch(
                                                                "",
                                                                "try [\"2 x retention\", dense], or [\"3 x (local(128), dense)\"]"))
                                : LayerList.of(count.read.apply(value, places)),
                layers ->
                        layers.entries().isEmpty()
                                ? count.write.apply(layers.count())
                                : kinds.write.apply(layers.entries()));
    }

    /** One for all, or a list of those of each. */
    private static ValueType<ParallelSection.Shards> countOrList(ValueType<Integer> count) {
        ValueType<List<Integer>> list = list(count);
        return new ValueType<>(
                "%s, or a list [..] of such".formatted(count.noun),
                (value, places) -> {
                    if (value.valueType() != ConfigValueType.LIST) {
                        return ParallelSection.Shards.of(count.read.apply(value, places));
                    }
                    List<Integer> counts = list.read.apply(value, places);
                    if (counts.isEmpty()) {
                        throw new Mismatch();
                    }
                    return new ParallelSection.Shards(counts);
                },
                ParallelSection.Shards::toString);
    }

    private static <T> ValueType<List<T>> list(ValueType<T> inner) {
        return new ValueType<>(
                "a list [..] of which each entry is " + inner.noun,
                (value, places) -> {
                    if (!(value instanceof com.typesafe.config.ConfigList entries)) {
                        throw new Mismatch();
                    }
                    return entries(entries, inner, places);
                },
                values ->
                        values.stream()
                                .map(inner.write)
                                .collect(Collectors.joining(", ", "[", "]")));
    }

    /** A record whose components are declared with {@link Setting}: {@code { from = 0, .. }}. */
    private static <T extends Record> ValueType<T> members(Class<T> type) {
        List<RecordComponent> components = List.of(type.getRecordComponents());
        List<String> names = components.stream().map(SectionReader::nameOf).toList();
        return new ValueType<>(
                names.stream().collect(Collectors.joining(" = .., ", "{ ", " = .. }")),
                (value, places) -> {
                    if (!(value instanceof ConfigObject written)) {
                        throw new Mismatch();
                    }
                    List<Mismatch.Part> wrong = new ArrayList<>();
                    written.forEach((name, member) -> knownMember(name, member, names, wrong));
                    Object[] values =
                            components.stream()
                                    .map(component -> member(component, written, places, wrong))
                                    .toArray();
                    if (!wrong.isEmpty()) {
                        throw new Mismatch(wrong);
                    }
                    return SectionReader.construct(type, values);
                },
                record ->
                        components.stream()
                                .map(component -> writtenMember(component, record))
                                .collect(Collectors.joining(", ", "{ ", " }")));
    }

    private static void knownMember(
            String name, ConfigValue member, List<String> names, List<Mismatch.Part> wrong) {
        if (!names.contains(name)) {
            wrong.add(
                    new Mismatch.Part(
                            member.origin(),
                            "." + name,
                            "one of " + String.join(", ", names),
                            "an unknown key",
                            NearWord.among(names, name)
                                    .map(known -> "did you mean " + known + "?")
                                    .orElse("remove it")));
        }
    }

    private static @Nullable Object member(
            RecordComponent component,
            ConfigObject written,
            Places places,
            List<Mismatch.Part> wrong) {
        Setting setting = component.getAnnotation(Setting.class);
        ValueType<?> type = of(component.getGenericType(), setting);
        String name = SectionReader.nameOf(component);
        ConfigValue value = written.get(name);
        String advice = "it is " + setting.doc();
        if (value == null && !setting.is().isEmpty()) {
            return type.parse(setting.is());
        }
        try {
            if (value == null) {
                throw new Mismatch("nothing", "add it: " + setting.doc());
            }
            return type.read.apply(value, places);
        } catch (Mismatch mismatch) {
            ConfigValue at = value == null ? written : value;
            wrong.add(
                    new Mismatch.Part(
                            at.origin(),
                            "." + name,
                            type.noun,
                            mismatch.gotOr(at.render(ConfigRenderOptions.concise())),
                            mismatch.adviceOr(advice)));
            return null;
        }
    }

    private static String writtenMember(RecordComponent component, Record record) {
        Setting setting = component.getAnnotation(Setting.class);
        try {
            return SectionReader.nameOf(component)
                    + " = "
                    + of(component.getGenericType(), setting)
                            .written(component.getAccessor().invoke(record));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot read " + component, e);
        }
    }

    /** What is wrong inside entries is told of all of them. */
    private static <T> List<T> entries(
            List<ConfigValue> written, ValueType<T> inner, Places places) {
        List<T> entries = new ArrayList<>();
        List<Mismatch.Part> wrong = new ArrayList<>();
        for (int i = 0; i < written.size(); i++) {
            try {
                entries.add(inner.read.apply(written.get(i), places));
            } catch (Mismatch mismatch) {
                String holder = "[%d]".formatted(i);
                if (mismatch.parts().isEmpty()) {
                    wrong.add(
                            new Mismatch.Part(
                                    written.get(i).origin(),
                                    holder,
                                    inner.noun,
                                    mismatch.gotOr(
                                            written.get(i).render(ConfigRenderOptions.concise())),
                                    mismatch.adviceOr("")));
                }
                mismatch.parts().forEach(part -> wrong.add(part.in(holder)));
            }
        }
        if (!wrong.isEmpty()) {
            throw new Mismatch(wrong);
        }
        return entries;
    }

    /**
     * A word, or a list of integers.
     *
     * @param listOf the list in a value that is no word; null for a word
     */
    private static ValueType<Object> ruleOrList(
            Object[] words,
            Function<List<Integer>, Object> ofList,
            Function<Object, @Nullable List<Integer>> listOf,
            Setting setting) {
        ValueType<Object> rule = choice(words);
        ValueType<List<Integer>> given = list(ranged(INTEGER, setting, MOST));
        return new ValueType<>(
                rule.noun + ", or " + given.noun,
                (value, places) ->
                        value instanceof com.typesafe.config.ConfigList
                                ? ofList.apply(given.read.apply(value, places))
                                : rule.read.apply(value, places),
                value -> {
                    List<Integer> list = listOf.apply(value);
                    return list == null ? rule.write.apply(value) : given.write.apply(list);
                });
    }

    private static ValueType<Object> choice(Object[] constants) {
        List<String> words = Arrays.stream(constants).map(ValueType::wordOf).toList();
        return new ValueType<>(
                "one of " + String.join(", ", words),
                (value, places) -> {
                    String got = value.unwrapped().toString();
                    int index = words.indexOf(got);
                    if (index < 0) {
                        throw new Mismatch(
                                "",
                                NearWord.among(words, got)
                                        .map(word -> "did you mean " + word + "?")
                                        .orElse(""));
                    }
                    return constants[index];
                },
                ValueType::wordOf);
    }

    private static String wordOf(Object constant) {
        return constant instanceof Worded worded
                ? worded.word()
                : constant.toString().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** Also takes a number in quotes: that is how an environment variable arrives. */
    private static <T> T number(ConfigValue value, Function<BigDecimal, T> convert) {
        try {
            return convert.apply(new BigDecimal(value.unwrapped().toString().strip()));
        } catch (ArithmeticException | NumberFormatException e) {
            throw new Mismatch();
        }
    }

    private static void requireAtMost(String most, ConfigValue value) {
        BigDecimal number = number(value, got -> got);
        if (number.compareTo(new BigDecimal(most)) > 0) {
            throw new Mismatch("", "it may be at most " + most);
        }
    }

    private static Duration duration(ConfigValue value) {
        if (value.valueType() == ConfigValueType.NUMBER) {
            throw new Mismatch(
                    value.unwrapped() + " without a unit", "write ms, s or minutes after it");
        }
        return lenient(() -> value.atKey("v").getDuration("v"));
    }

    private static String seconds(Duration duration) {
        return duration.toNanosPart() == 0
                ? duration.toSeconds() + " s"
                : duration.toNanosPart() % 1_000_000 == 0
                        ? duration.toMillis() + " ms"
                        : duration.toNanos() + " ns";
    }

    private interface Getter<T> {
        T get();
    }

    private static <T> T lenient(Getter<T> getter) {
        try {
            return getter.get();
        } catch (com.typesafe.config.ConfigException e) {
            throw new Mismatch();
        }
    }
}
