package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.serve.ServeAddress;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Where a server listens, for whom, and how much it takes. */
final class ServeArguments {
    private static final String KEY_VARIABLE = "PENSTOCK_API_KEY";
    private static final Pattern KEY = Pattern.compile("[\\x21-\\x7e]{1,1000}");

    /** Keys and values of longer texts take room that few need. */
    private static final int USUAL_LENGTH = 2_048;

    @Option(
            names = "--host",
            paramLabel = "HOST",
            defaultValue = "127.0.0.1",
            description =
                    "Name or address of this machine to listen on (default: ${DEFAULT-VALUE}). One"
                            + " that other machines reach needs a key, or --insecure.")
    private String host = "127.0.0.1";

    @Option(
            names = "--port",
            paramLabel = "PORT",
            defaultValue = "8000",
            description = "0 takes any that is free (default: ${DEFAULT-VALUE}).")
    @WholeNumber(from = 0, to = 65_535)
    private int port;

    @Option(
            names = "--api-key-file",
            paramLabel = "FILE",
            description =
                    "A file with the key that requests must show as Authorization: Bearer KEY"
                            + " (default: the environment's PENSTOCK_API_KEY, if it is set).")
    private @Nullable Path keyFile;

    @Option(
            names = "--insecure",
            description = "Serve others without a key: where everyone on the network is trusted.")
    private boolean insecure;

    @Option(
            names = "--together",
            paramLabel = "N",
            defaultValue = "8",
            description =
                    "Texts that grow side by side, as far as there is room for their keys and values"
                            + " (default: ${DEFAULT-VALUE}).")
    @WholeNumber(from = 1, to = 4_096)
    private int together;

    @Option(
            names = "--waiting",
            paramLabel = "N",
            defaultValue = "64",
            description =
                    "Texts in the queue; more are refused with status 429 (default:"
                            + " ${DEFAULT-VALUE}).")
    @WholeNumber(from = 0, to = 100_000)
    private int waiting;

    @Option(
            names = "--max-length",
            paramLabel = "N",
            description =
                    "Maximum tokens of a text with its prompt (default: the model's context, at most"
                            + " 2048).")
    @WholeNumber(from = 2)
    private @Nullable Integer length;

    @Option(
            names = "--cache-tokens",
            paramLabel = "N",
            description =
                    "Tokens of all texts whose keys and values have room, at least --max-length; a text"
                            + " waits until there is room for all of it (default: room for --together"
                            + " texts of --max-length).")
    @WholeNumber(from = 2)
    private @Nullable Integer cached;

    /** What is wrong with these options, whatever the model. */
    void check(List<Problem> problems) {
        within("--port", port, 0, 65_535, problems);
        within("--together", together, 1, 4_096, problems);
        within("--waiting", waiting, 0, 100_000, problems);
        if (length != null) {
            within("--max-length", length, 2, Integer.MAX_VALUE / 4, problems);
        }
        if (cached != null) {
            within("--cache-tokens", cached, 2, Integer.MAX_VALUE, problems);
        }
    }

    private static void within(String option, int value, int from, int to, List<Problem> problems) {
        if (value < from || value > to) {
            problems.add(Problem.atOption(option, "%d to %d".formatted(from, to), "" + value, ""));
        }
    }

    /** What is wrong with these options for a model. */
    List<Problem> problems(ModelShape shape) {
        int longest = longest(shape);
        if (cached != null && !shape.block().attends()) {
            return List.of(
                    Problem.atOption(
                            "--cache-tokens",
                            "none for this model: its layers keep a state of one size for each text, however long it is",
                            "" + cached,
                            "leave it out; --together alone says how many states there are"));
        }
        return cached == null || cached >= longest
                ? List.of()
                : List.of(
                        Problem.atOption(
                                "--cache-tokens",
                                "room for a text of --max-length, %d tokens or more"
                                        .formatted(longest),
                                "" + cached,
                                "give more, or --max-length=" + cached));
    }

    /** Returns the limits on texts of a model, once {@link #problems} has found nothing. */
    JoiningTexts.Limits limits(ModelShape shape) {
        return cached == null
                ? new JoiningTexts.Limits(together, waiting, longest(shape))
                : new JoiningTexts.Limits(together, waiting, longest(shape), cached);
    }

    private int longest(ModelShape shape) {
        return length == null ? Math.max(2, Math.min(shape.context(), USUAL_LENGTH)) : length;
    }

    /**
     * Returns where to listen.
     *
     * @param problems receives one if that is not possible
     */
    Optional<ServeAddress> address(List<Problem> problems) {
        Optional<String> key = key(problems);
        try {
            InetAddress address = InetAddress.getByName(host);
            if (!address.isLoopbackAddress() && key.isEmpty() && !insecure) {
                problems.add(
                        Problem.atOption(
                                "--host",
                                "a key for an address that other machines reach",
                                host + " and none",
                                "give --api-key-file, or --insecure where everyone on that network"
                                        + " is trusted"));
            }
            return Optional.of(ServeAddress.of(address, port, key));
        } catch (UnknownHostException e) {
            problems.add(
                    Problem.atOption(
                            "--host", "a name or address of this machine", host, "try 127.0.0.1"));
            return Optional.empty();
        }
    }

    private Optional<String> key(List<Problem> problems) {
        if (keyFile == null) {
            Optional<String> key = Optional.ofNullable(System.getenv(KEY_VARIABLE));
            return key.filter(text -> isKey(KEY_VARIABLE, text, problems));
        }
        try {
            String text = Files.readString(keyFile).strip();
            return Optional.of(text).filter(key -> isKey("--api-key-file", key, problems));
        } catch (CharacterCodingException e) {
            isKey("--api-key-file", "", problems);
        } catch (IOException e) {
            problems.add(
                    Problem.atOption(
                            "--api-key-file",
                            "a file that can be read",
                            keyFile + " (" + e.getClass().getSimpleName() + ")",
                            ""));
        }
        return Optional.empty();
    }

    /** Says nothing of a key that might be a good one elsewhere. */
    private static boolean isKey(String place, String text, List<Problem> problems) {
        boolean good = KEY.matcher(text).matches();
        if (!good) {
            problems.add(
                    Problem.atOption(
                            place,
                            "a key of 1 to 1000 visible ASCII characters",
                            text.isEmpty() ? "none" : "something else",
                            "make one with: openssl rand -hex 32"));
        }
        return good;
    }

    /** Whether everyone on the network is trusted. */
    boolean isInsecure() {
        return insecure;
    }

    /** As it was given: it may be a name of another machine's. */
    String host() {
        return host;
    }

    /** The problem of a port that is taken. */
    Problem taken(IOException e) {
        return Problem.atOption(
                "--port",
                "a port of %s that is free".formatted(host),
                port + " (" + e.getMessage() + ")",
                "give another; 0 takes any");
    }
}
