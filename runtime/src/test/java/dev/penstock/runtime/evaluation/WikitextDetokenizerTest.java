package dev.penstock.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Expectations are worked out by hand from the rules in the protocols' sources. */
class WikitextDetokenizerTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            ignoreLeadingAndTrailingWhitespace = false,
            quoteCharacter = '~',
            value = {
                "the players ' tunnel|the players' tunnel",
                "a/' 7/b|a/'[0-9]/b",
                "' 90s|' 90s",
                "mid @-@ 1990s|mid-1990s",
                "1 @,@ 200|1,200",
                "3 @.@ 5|3.5",
                "as follows : one|as follows: one",
                "one ; two|one; two",
                "It ended . Then|It ended. Then",
                "Stop ! Now|Stop! Now",
                "Why ? So|Why? So",
                "red , blue|red, blue",
                "a ( in  brackets ) b|a (in  brackets) b",
                "a [ note ] b|a [note] b",
                "a { set } b|a {set} b",
                "said \" yes indeed \" twice|said \"yes indeed\" twice",
                "called ' it ' once|called 'it' once",
                "= = = = Deep = = = =|==== Deep ====",
                "= = = Deeper = = =|=== Deeper ===",
                "= = Section = =|== Section ==",
                "= Title =|= Title =",
                "30 \u00b0 C|30\u00b0C",
                "for N years|for 1 years",
                "Tom 's cat|Tom's cat",
            })
    void everyRuleDoesWhatItDoesInThePublishedProtocols(String from, String to) {
        assertThat(WikitextDetokenizer.apply(from)).isEqualTo(to);
    }

    @Test
    void blanksBesideLineBreaksAreRemoved() {
        assertThat(WikitextDetokenizer.apply(" \n = Title = \n \n text \n"))
                .isEqualTo("\n= Title =\n\ntext\n");
    }

    @Test
    void bracketsReachOverLinesAndStopAtTheFirstClosingOne() {
        assertThat(WikitextDetokenizer.apply("( a\n b ) c )")).isEqualTo("(a\nb) c )");
    }

    /** The blank after it is consumed with it, so that every other one stays. */
    @Test
    void replacementsDoNotOverlap() {
        assertThat(WikitextDetokenizer.apply("1 . . . 2")).isEqualTo("1. .. 2");
    }

    @Test
    void aSentenceOfTheDataSetReadsLikeText() {
        assertThat(
                        WikitextDetokenizer.apply(
                                " Senj\u014d no Valkyria 3 : Unrecorded Chronicles ( Japanese : X ) , lit ."
                                        + " \" Valkyria \" 's third @-@ best , N copies . \n"))
                .isEqualTo(
                        " Senj\u014d no Valkyria 3: Unrecorded Chronicles (Japanese: X), lit."
                                + " \"Valkyria\"'s third-best, 1 copies.\n");
    }
}
