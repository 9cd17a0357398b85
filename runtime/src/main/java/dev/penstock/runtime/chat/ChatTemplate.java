package dev.penstock.runtime.chat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Writes chats as the text that a model reads: with a template that came with its tokenizer, or one
 * that is known by name. Safe to share.
 */
public final class ChatTemplate {
    /** The name in a configuration for the template of the tokenizer's files. */
    public static final String OF_TOKENIZER = "tokenizer";

    private static final String CHATML =
            "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' +"
                    + " message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
                    + "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    private static final String LLAMA3 =
            "{{ '<|begin_of_text|>' }}{% for message in messages %}"
                    + "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' +"
                    + " message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
                    + "{% if add_generation_prompt %}"
                    + "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";
    private static final String PLAIN =
            "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}"
                    + "{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";
    private static final Map<String, String> NAMED =
            Map.of("chatml", CHATML, "llama3", LLAMA3, "plain", PLAIN);

    private static final String FILE = "chat_template.jinja";
    private static final String CONFIG = "tokenizer_config.json";
    private static final String MEMBER = "chat_template";

    /** Characters that may be written to divide a prompt; from then on it is left whole. */
    private static final long MOST_TO_DIVIDE = 50_000_000;

    /** What people call it; empty for one that is known by name. */
    private final String file;

    private final Template template;
    private final Map<String, Object> tokens;

    /** Found when they are first asked for. */
    private volatile @Nullable List<String> marks;

    /**
     * @throws TemplateException if it uses what is not supported, naming the file
     */
    private ChatTemplate(String file, String source, Map<String, Object> tokens) {
        this.file = file;
        template = named(() -> Template.of(source));
        this.tokens = Map.copyOf(tokens);
    }

    /** Whoever reads of a problem knows the templates by name, but not which file was taken. */
    private <T> T named(Supplier<T> work) {
        try {
            return work.get();
        } catch (TemplateException e) {
            throw file.isEmpty() ? e : new TemplateException(file + ": " + e.getMessage());
        } catch (StackOverflowError e) { // of lists in themselves; the rest has its limit
            throw new TemplateException(file + ": expected values that are not in themselves");
        }
    }

    /** Returns the names that {@link #of} knows besides {@link #OF_TOKENIZER}. */
    public static List<String> names() {
        return NAMED.keySet().stream().sorted().toList();
    }

    /**
     * Returns the template with this name, or that of a tokenizer.
     *
     * @param name one of {@link #names} or {@link #OF_TOKENIZER}
     * @param tokenizer the tokenizer's folder or one of its files; null for one without files
     * @throws TemplateException if there is none, or it uses what is not supported
     */
    public static ChatTemplate of(String name, @Nullable Path tokenizer) {
        String known = NAMED.get(name);
        if (known != null) {
            return new ChatTemplate("", known, Map.of());
        }
        if (!name.equals(OF_TOKENIZER)) {
            throw new TemplateException("there is none with this name");
        }
        if (tokenizer == null) {
            throw new TemplateException("the tokenizer has no files, and so no template");
        }
        try {
            return ofFiles(
                    Files.isDirectory(tokenizer)
                            ? tokenizer
                            : tokenizer.toAbsolutePath().resolveSibling(""));
        } catch (IOException e) {
            throw new TemplateException(tokenizer + " cannot be read: " + e.getMessage());
        }
    }

    /** Returns whether a tokenizer's folder has a template. */
    public static boolean isIn(Path tokenizer) {
        try {
            var _ = of(OF_TOKENIZER, tokenizer);
            return true;
        } catch (TemplateException e) {
            return false;
        }
    }

    /** Returns the template of this text, without the tokens that some ask for. */
    static ChatTemplate ofSource(String source, Map<String, Object> tokens) {
        return new ChatTemplate(FILE, source, tokens);
    }

    private static ChatTemplate ofFiles(Path folder) throws IOException {
        Path config = folder.resolve(CONFIG);
        JsonNode said =
                Files.exists(config)
                        ? new ObjectMapper().readTree(config.toFile())
                        : new ObjectMapper().createObjectNode();
        Path file = folder.resolve(FILE);
        boolean apart = Files.exists(file);
        String source = apart ? Files.readString(file) : source(said.path(MEMBER));
        if (source.isEmpty()) {
            throw new TemplateException(
                    "%s has neither %s nor a %s in %s".formatted(folder, FILE, MEMBER, CONFIG));
        }
        return new ChatTemplate(apart ? FILE : CONFIG, source, tokens(said));
    }

    /** One template, or the default one of several with names. */
    private static String source(JsonNode member) {
        if (member.isTextual()) {
            return member.textValue();
        }
        for (JsonNode each : member) {
            if (each.path("name").asText().equals("default")) {
                return each.path("template").asText();
            }
        }
        return "";
    }

    /** Tokens that the configuration names, such as {@code bos_token}. */
    private static Map<String, Object> tokens(JsonNode said) {
        Map<String, Object> tokens = new HashMap<>();
        for (Map.Entry<String, JsonNode> member : said.properties()) {
            if (member.getKey().endsWith("_token")) {
                JsonNode token = member.getValue();
                String text = token.isObject() ? token.path("content").asText() : token.textValue();
                if (text != null) {
                    tokens.put(member.getKey(), text);
                }
            }
        }
        return tokens;
    }

    /**
     * Returns a chat as text.
     *
     * @param prompt whether what comes before an answer is to follow
     * @throws TemplateException if the template does not take it
     */
    public String render(List<ChatMessage> messages, boolean prompt) {
        List<Object> all = new ArrayList<>();
        for (ChatMessage message : messages) {
            all.add(Map.of("role", message.role(), "content", message.content()));
        }
        Map<String, Object> variables = new HashMap<>(tokens);
        variables.put("messages", all);
        variables.put("add_generation_prompt", prompt);
        long characters = messages.stream().mapToLong(each -> each.content().length()).sum();
        var work = new TemplateWork(messages.size(), characters);
        return named(() -> template.render(variables, work));
    }

    /** Returns whether it is one of {@link #names}. */
    public boolean isKnown() {
        return file.isEmpty();
    }

    /**
     * Returns a chat as the text that a model continues with its answer.
     *
     * @throws TemplateException if the template does not take it, or a message would end itself and
     *     could speak for others
     */
    public String prompt(List<ChatMessage> messages) {
        requireHonest(messages, marks());
        return render(messages, true);
    }

    /**
     * Returns {@link #prompt} divided as {@link #parts} divides chats: encoded each for itself, the
     * parts give the tokens that a model was trained on. A prompt whose answers cannot be found, or
     * would take long to find, is left whole.
     *
     * @throws TemplateException as {@link #prompt}
     */
    public List<String> promptParts(List<ChatMessage> messages) {
        String whole = prompt(messages);
        long answers = messages.stream().filter(ChatMessage::isAnswer).count();
        if (!isKnown() && answers * whole.length() > MOST_TO_DIVIDE) {
            return List.of(whole);
        }
        try {
            return divided(messages, whole, true).stream().map(ChatPart::text).toList();
        } catch (TemplateException e) {
            return List.of(whole);
        }
    }

    /** With what a message would end itself and speak for others. */
    private List<String> marks() {
        List<String> known = marks;
        if (known == null) {
            known = findMarks();
            marks = known;
        }
        return known;
    }

    private List<String> findMarks() {
        String end = end();
        if (!end.isBlank()) {
            return List.of(end);
        }
        List<String> found = new ArrayList<>();
        for (String role : ChatMessage.ROLES) {
            String beginning = beginning(role);
            if (!beginning.isEmpty()) {
                found.add(end + beginning);
            }
        }
        return found;
    }

    /** What stands before the first message of this role; empty if it is not taken. */
    private String beginning(String role) {
        try {
            String content = "a message";
            String whole = render(List.of(new ChatMessage(role, content)), false);
            return whole.substring(0, Math.max(0, whole.indexOf(content))).strip();
        } catch (TemplateException e) {
            return "";
        }
    }

    private static void requireHonest(List<ChatMessage> messages, List<String> marks) {
        for (ChatMessage message : messages) {
            String content = message.content().replace("\r\n", "\n");
            for (String mark : marks) {
                if (content.contains(mark)) {
                    throw new TemplateException(
                            "expected no message with %s, which ends one"
                                    .formatted(mark.replace("\n", "\\n")));
                }
            }
        }
    }

    /**
     * Returns the text that ends an answer: the template's mark, or where it has none the line's
     * end; empty if it ends answers with nothing.
     */
    public String end() {
        String answer = "an answer";
        List<ChatMessage> chat =
                List.of(
                        new ChatMessage("user", "a question"),
                        new ChatMessage(ChatMessage.ASSISTANT, answer));
        String whole = render(chat, false);
        int at = whole.lastIndexOf(answer);
        String end = at < 0 ? "" : whole.substring(at + answer.length());
        return end.isBlank() ? end : end.strip();
    }

    /**
     * Returns texts of which each ends an answer and is no part of it: the template's mark, or
     * where it has none the line's end with the beginning of another message, which no message of a
     * chat contains. An answer may then have several lines.
     *
     * @param separator what stands between documents, if it is no token that ends a text: it comes
     *     after the line's end of a chat's last answer; empty for one that is
     */
    public List<String> ends(String separator) {
        String end = end();
        if (end.isEmpty() || !end.isBlank()) {
            return end.isEmpty() ? List.of() : List.of(end);
        }
        List<String> ends = new ArrayList<>(marks());
        if (ends.isEmpty()) {
            return List.of(end);
        }
        if (!separator.isEmpty()) {
            ends.add(end + separator);
        }
        return List.copyOf(ends);
    }

    /**
     * Returns a chat as text, divided into answers and what is around them. An answer begins where
     * a model is asked for one, and ends where the next message does not yet begin.
     *
     * @throws TemplateException if the template does not take the chat, or a message would end
     *     itself and speak for others, or the text up to an answer is not the beginning of the text
     *     with it: then nobody knows what of it is the answer
     */
    public List<ChatPart> parts(List<ChatMessage> messages) {
        requireHonest(messages, marksIfAny());
        return divided(messages, render(messages, false), false);
    }

    /** Of a template that takes no chat of a question and an answer, nobody knows the marks. */
    private List<String> marksIfAny() {
        try {
            return marks();
        } catch (TemplateException e) {
            return List.of();
        }
    }

    /** Where an answer is in the text of its chat. */
    private record Answer(int from, int to) {}

    private List<ChatPart> divided(List<ChatMessage> messages, String whole, boolean prompt) {
        List<ChatPart> parts = new ArrayList<>();
        int done = 0;
        List<Answer> answers = isKnown() ? answers(messages) : found(messages, whole, prompt);
        for (Answer answer : answers) {
            add(parts, whole.substring(done, answer.from()), false);
            add(parts, whole.substring(answer.from(), answer.to()), true);
            done = answer.to();
        }
        add(parts, whole.substring(done), false);
        return parts;
    }

    /** Templates that are known by name write every message for itself. */
    private List<Answer> answers(List<ChatMessage> messages) {
        int empty = render(List.of(), false).length();
        int asked = render(List.of(), true).length() - empty;
        List<Answer> answers = new ArrayList<>();
        int at = empty;
        for (ChatMessage message : messages) {
            int next = at + render(List.of(message), false).length() - empty;
            if (message.isAnswer()) {
                answers.add(new Answer(at + asked, next));
            }
            at = next;
        }
        return answers;
    }

    private List<Answer> found(List<ChatMessage> messages, String whole, boolean prompt) {
        List<Answer> answers = new ArrayList<>();
        int done = 0;
        for (int i = 0; i < messages.size(); i++) {
            if (messages.get(i).isAnswer()) {
                String before = render(messages.subList(0, i), true);
                String with = render(messages.subList(0, i + 1), false);
                boolean last = i + 1 == messages.size() && !prompt;
                if (!with.startsWith(before)
                        || !(last ? with.equals(whole) : whole.startsWith(with))
                        || before.length() < done) {
                    throw new TemplateException(
                            "it writes the beginning of a chat in another way than the whole, so"
                                    + " that its answers cannot be found");
                }
                answers.add(new Answer(before.length(), with.length()));
                done = with.length();
            }
        }
        return answers;
    }

    private static void add(List<ChatPart> parts, String text, boolean answer) {
        if (!text.isEmpty()) {
            parts.add(new ChatPart(text, answer));
        }
    }
}
