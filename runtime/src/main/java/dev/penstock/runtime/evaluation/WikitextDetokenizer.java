package dev.penstock.runtime.evaluation;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Puts WikiText's tokens together again, by the rules that both protocols share, in their order
 * (Megatron-LM, {@code tasks/zeroshot_gpt/detokenizer.py}; lm-evaluation-harness, {@code
 * lm_eval/tasks/wikitext/preprocess_wikitext.py}). Their mistakes are part of the protocol: {@code
 * " N "} becomes {@code " 1 "}, and the second rule, whose slashes were meant as quotes of the
 * expression, changes nothing but a digit between slashes.
 */
final class WikitextDetokenizer {
    private static final String BLANKS = Whitespace.CHARACTER + "*";

    private record Rule(Pattern found, String put) {
        static Rule text(String found, String put) {
            return new Rule(Pattern.compile(found, Pattern.LITERAL), Matcher.quoteReplacement(put));
        }

        /** Blanks just inside of a pair. */
        static Rule pair(String open, String inner, String close, String put) {
            return new Rule(
                    Pattern.compile(open + BLANKS + "(" + inner + "*?)" + BLANKS + close), put);
        }

        String apply(String text) {
            return found.matcher(text).replaceAll(put);
        }
    }

    private static final Rule[] RULES = {
        Rule.text("s '", "s'"),
        new Rule(Pattern.compile("/' [0-9]/"), Matcher.quoteReplacement("/'[0-9]/")),
        Rule.text(" @-@ ", "-"),
        Rule.text(" @,@ ", ","),
        Rule.text(" @.@ ", "."),
        Rule.text(" : ", ": "),
        Rule.text(" ; ", "; "),
        Rule.text(" . ", ". "),
        Rule.text(" ! ", "! "),
        Rule.text(" ? ", "? "),
        Rule.text(" , ", ", "),
        Rule.pair("\\(", "[^\\)]", "\\)", "($1)"),
        Rule.pair("\\[", "[^\\]]", "\\]", "[$1]"),
        Rule.pair("\\{", "[^}]", "\\}", "{$1}"),
        Rule.pair("\"", "[^\"]", "\"", "\"$1\""),
        Rule.pair("'", "[^']", "'", "'$1'"),
        Rule.text("= = = =", "===="),
        Rule.text("= = =", "==="),
        Rule.text("= =", "=="),
        Rule.text(" \u00b0 ", "\u00b0"),
        Rule.text(" \n", "\n"),
        Rule.text("\n ", "\n"),
        Rule.text(" N ", " 1 "),
        Rule.text(" 's", "'s"),
    };

    private WikitextDetokenizer() {}

    static String apply(String text) {
        String result = text;
        for (Rule rule : RULES) {
            result = rule.apply(result);
        }
        return result;
    }
}
