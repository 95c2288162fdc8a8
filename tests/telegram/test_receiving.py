"""What people send becomes jobs; what they ask for happens. Driven as people drive Telegram."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats import Access, Mode
from app.job import Source, State
from app.telegram.recordings import HANDED_OVER_BYTES
from tests.speech import DATA
from tests.telegram.double import Telegram
from tests.telegram.front import OGG, Front, front


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    # Tests ask again sooner than the original lets.
    with Telegram(slows_hasty=False) as double:
        yield double


@pytest.fixture
def bot(data_dir: Path, telegram: Telegram) -> Iterator[Front]:
    """A receiver that serves everybody."""
    with front(data_dir, telegram) as found:
        yield found


KINDS = ("voice", "audio", "video", "video_note", "document")


@pytest.mark.parametrize("kind", KINDS)
def test_ct23_each_kind_of_message_becomes_a_job(telegram: Telegram, bot: Front, kind: str) -> None:
    alpha = telegram.person("Alpha")
    sent = getattr(alpha, f"sends_{kind}")(OGG)
    (job,) = bot.waits_for_jobs(1)
    assert (job.source, job.state, job.sender) == (
        Source.TELEGRAM,
        State.CREATED,
        f"telegram:{alpha.id}",
    )
    assert (job.tg_chat_id, job.tg_reply_message_id) == (alpha.id, sent.id)
    with bot.house.storage.open(bot.house.queue.file(job.source_file)) as stored:
        assert stored.read() == OGG
    bot.waits_until_idle()
    kept = bot.messages.of_job(job.id)
    assert kept and (kept.chat, kept.message, kept.person) == (alpha.id, sent.id, alpha.id)


def test_ct23_a_document_is_taken_by_its_bytes(telegram: Telegram, bot: Front) -> None:
    alpha = telegram.person("Alpha")
    real = (DATA / "russian-short.m4a").read_bytes()
    alpha.sends_document(real, name="", media_type="")
    alpha.sends_document(real, name="notes.txt", media_type="text/plain")
    assert [job.display_name for job in bot.waits_for_jobs(2)] == ["File", "notes.txt"]


@pytest.mark.parametrize(
    "data",
    ["Просто текст, не запись. ".encode() * 40, b"%PDF-1.7 " + bytes(500), b"short text"],
)
def test_ct23_a_document_without_sound_gets_one_plain_answer(
    telegram: Telegram, bot: Front, data: bytes
) -> None:
    alpha = telegram.person("Alpha")
    sent = alpha.sends_document(data, name="call.ogg", media_type="audio/ogg")
    bot.waits_until_idle()
    telegram.waits_for(lambda: alpha.chat.answers_to(sent), "an answer")
    assert alpha.chat.texts == [
        "This is not a sound or video file that Pisar can read. Send a recording."
    ]
    assert bot.jobs() == []


def test_ct23_in_a_group_other_documents_are_left_alone(telegram: Telegram, bot: Front) -> None:
    alpha = telegram.person("Alpha")
    office = telegram.group("Office", alpha)
    office.adds_bot(alpha, is_admin=True)
    alpha.sends_document(b"%PDF-1.7 " + bytes(500), name="a.pdf", to=office)
    alpha.sends_document(OGG, name="b.pdf", to=office)
    (job,) = bot.waits_for_jobs(1)
    bot.waits_until_idle()
    assert job.display_name == "b.pdf"
    assert len(office.texts) == 1  # the greeting


def test_forwarded_recordings_topics_and_channels(telegram: Telegram, bot: Front) -> None:
    alpha = telegram.person("Alpha")
    forum = telegram.group("Forum", alpha, is_forum=True)
    forum.adds_bot(alpha, is_admin=True)
    topic = forum.opens_topic("Calls", alpha)
    news = telegram.channel("News")
    news.adds_bot(alpha, is_admin=True)
    alpha.sends_voice(OGG, forwarded_from="Somebody")
    alpha.sends_voice(OGG, to=forum, topic=topic)
    news.sends_audio(OGG, "talk.mp3")
    jobs = bot.waits_for_jobs(3)
    bot.waits_until_idle()
    kept = [bot.messages.of_job(job.id) for job in jobs]
    assert [item.thread if item else "?" for item in kept] == [None, topic, None]
    assert [item.person if item else "?" for item in kept] == [alpha.id, alpha.id, None]
    assert news.texts == []


def test_ct13_an_album_is_a_job_for_each_in_the_sent_order(telegram: Telegram, bot: Front) -> None:
    alpha = telegram.person("Alpha")
    sent = alpha.sends_album([OGG + bytes([number]) for number in range(10)])
    jobs = bot.waits_for_jobs(10)
    assert [job.tg_reply_message_id for job in jobs] == [message.id for message in sent]
    bot.waits_until_idle()
    kept = [bot.messages.of_job(job.id) for job in jobs]
    assert len({item.album for item in kept if item}) == 1
    assert kept[0] and len(bot.messages.album(alpha.id, str(kept[0].album))) == 10


def test_ct22_an_edited_caption_makes_no_new_job(telegram: Telegram, bot: Front) -> None:
    alpha = telegram.person("Alpha")
    sent = alpha.sends_voice(OGG, caption="frist")
    bot.waits_for_jobs(1)
    alpha.edits(sent, "first")
    bot.waits_until_idle()
    assert len(bot.jobs()) == 1
    assert alpha.chat.texts == []


def test_ct10_p46_the_same_message_five_times_is_one_job_and_no_answer(
    telegram: Telegram, bot: Front
) -> None:
    alpha = telegram.person("Alpha")
    sent = alpha.sends_voice(OGG)
    bot.waits_for_jobs(1)
    bot.waits_until_idle()
    for _ in range(5):
        telegram.tells_again(sent)
    bot.waits_until_idle()
    assert len(bot.jobs()) == 1
    assert alpha.chat.texts == []
    # Its file was fetched once: a repeat is known before anything is asked for.
    assert len(telegram.journal.done("getFile")) == 1


def test_ct10_p46_the_same_message_twice_in_one_batch_is_one_job(
    telegram: Telegram, data_dir: Path
) -> None:
    alpha = telegram.person("Alpha")
    sent = alpha.sends_voice(OGG)
    telegram.tells_again(sent)
    with front(data_dir, telegram) as bot:
        bot.waits_until_idle()
        assert len(bot.jobs()) == 1
        assert list(bot.house.scratch.iterdir()) == []


def test_ct01_a_large_file_gets_a_link_before_telegram_is_asked(
    telegram: Telegram, bot: Front
) -> None:
    alpha = telegram.person("Alpha", language="ru")
    sent = alpha.sends_video(OGG, size=25_000_000)
    telegram.waits_for(lambda: alpha.chat.answers_to(sent), "a link")
    (told,) = alpha.chat.texts
    assert "20 МБ" in told and "https://pisar.example/u/" in told
    assert telegram.journal.calls("getFile") == []
    assert bot.jobs() == []


def test_ct01_a_large_file_of_unknown_size_gets_a_link_too(
    telegram: Telegram, bot: Front, tmp_path: Path
) -> None:
    large = tmp_path / "large.ogg"
    with large.open("wb") as file:
        file.truncate(HANDED_OVER_BYTES + 1)
    alpha = telegram.person("Alpha")
    sent = alpha.sends_voice(large, size=HANDED_OVER_BYTES + 1)
    del sent.content["voice"]["file_size"]
    telegram.tells_again(sent)
    bot.waits_until_idle()
    telegram.waits_for(lambda: len(alpha.chat.answers_to(sent)) == 2, "a link for each telling")
    assert bot.jobs() == []


def test_ct01_without_an_address_of_our_own_the_limit_is_told(
    telegram: Telegram, data_dir: Path
) -> None:
    with front(data_dir, telegram, SERVER__PUBLIC_URL=""):
        alpha = telegram.person("Alpha")
        alpha.sends_video(OGG, size=25_000_000)
        telegram.waits_for(lambda: alpha.chat.texts, "an answer")
        assert "20 MB" in alpha.chat.texts[0] and "/u/" not in alpha.chat.texts[0]


@pytest.mark.parametrize("serves_files", [False, True])
def test_ct01_a_local_server_hands_over_large_files_by_both_forms_of_path(
    data_dir: Path, tmp_path: Path, serves_files: bool
) -> None:
    large = tmp_path / "large.ogg"
    large.write_bytes(OGG + bytes(25 * 1024**2))
    with (
        Telegram(is_local=True, serves_files=serves_files, slows_hasty=False) as telegram,
        front(data_dir, telegram, TELEGRAM__LOCAL="true") as bot,
    ):
        telegram.person("Alpha").sends_voice(large)
        (job,) = bot.waits_for_jobs(1)
        assert bot.house.queue.file(job.source_file).size == large.stat().st_size


def test_a_recording_that_is_too_long_or_too_large_is_told_so(
    telegram: Telegram, data_dir: Path
) -> None:
    limits = {"INTAKE__MAX_DURATION": "60", "INTAKE__MAX_SIZE": "1000"}
    with front(data_dir, telegram, **limits) as bot:
        alpha = telegram.person("Alpha")
        alpha.sends_voice(OGG, seconds=61)
        alpha.sends_voice(bytes(1001))
        telegram.waits_for(lambda: len(alpha.chat.texts) == 2, "two answers")
        assert "longer than this service takes" in alpha.chat.texts[0]
        assert "larger than this service takes" in alpha.chat.texts[1]
        assert bot.jobs() == []


def test_a_file_larger_than_telegram_said_is_refused_and_leaves_nothing(
    telegram: Telegram, data_dir: Path
) -> None:
    with front(data_dir, telegram, INTAKE__MAX_SIZE="1000") as bot:
        alpha = telegram.person("Alpha")
        alpha.sends_voice(OGG + bytes(2000), size=900)
        telegram.waits_for(lambda: alpha.chat.texts, "an answer")
        assert "larger than this service takes" in alpha.chat.texts[0]
        assert list(bot.house.scratch.iterdir()) == []


def test_an_empty_file_is_told_so(telegram: Telegram, bot: Front) -> None:
    alpha = telegram.person("Alpha")
    alpha.sends_voice(b"")
    telegram.waits_for(lambda: alpha.chat.texts, "an answer")
    assert "The file is empty" in alpha.chat.texts[0]


class TestWhoMayUseIt:
    def test_the_bot_is_closed_until_the_owner_opens_it(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        with front(data_dir, telegram, TELEGRAM__ALLOW="") as bot:
            alpha = telegram.person("Alpha", language="ru")
            alpha.starts()
            alpha.sends_voice(OGG)
            alpha.sends_voice(OGG)
            bot.waits_until_idle()
            telegram.waits_for(lambda: alpha.chat.texts, "an answer")
            assert bot.jobs() == []
            (told,) = alpha.chat.texts
            assert str(alpha.id) in told and "владелец" in told.lower()
            assert telegram.journal.calls("getFile") == []
            bot.chats.set_access(alpha.id, Access.ALLOWED)
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(1)

    def test_the_settings_allow_by_number_and_the_owner_denies(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        alpha, beta = telegram.person("Alpha"), telegram.person("Beta")
        with front(data_dir, telegram, TELEGRAM__ALLOW=str(alpha.id)) as bot:
            beta.sends_voice(OGG)
            alpha.sends_voice(OGG)
            (job,) = bot.waits_for_jobs(1)
            assert job.tg_chat_id == alpha.id
            bot.chats.set_access(alpha.id, Access.DENIED)
            alpha.sends_voice(OGG)
            bot.waits_until_idle()
            assert len(bot.jobs()) == 1

    def test_a_group_is_allowed_as_a_whole_or_for_an_allowed_person(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        alpha, beta = telegram.person("Alpha"), telegram.person("Beta")
        with front(data_dir, telegram, TELEGRAM__ALLOW=str(alpha.id)) as bot:
            office = telegram.group("Office", beta, alpha)
            office.adds_bot(beta, is_admin=True)
            beta.sends_voice(OGG, to=office)
            bot.waits_until_idle()
            assert bot.jobs() == []
            assert f"Its number is {office.id}" in office.texts[0]
            alpha.sends_voice(OGG, to=office)
            bot.waits_for_jobs(1)
            bot.chats.set_access(office.id, Access.ALLOWED)
            beta.sends_voice(OGG, to=office)
            bot.waits_for_jobs(2)

    def test_a_stranger_presses_nothing(self, telegram: Telegram, data_dir: Path) -> None:
        with front(data_dir, telegram) as bot:
            alpha = telegram.person("Alpha")
            alpha.says("/lang")
            telegram.waits_for(lambda: alpha.chat.from_bot, "buttons")
            bot.chats.set_access(alpha.id, Access.DENIED)
            press = alpha.presses(alpha.chat.from_bot[0], "Русский")
            telegram.waits_for(lambda: press.answer is not None, "the press is answered")
            assert bot.chats.get(alpha.id).language is None


class TestModes:
    def test_ct16_on_request_only_what_is_asked_for_becomes_a_job(
        self, telegram: Telegram, bot: Front
    ) -> None:
        alpha, beta = telegram.person("Alpha"), telegram.person("Beta")
        office = telegram.group("Office", alpha, beta)
        office.adds_bot(alpha, is_admin=True)
        bot.waits_until_idle()
        bot.chats.set_mode(office.id, Mode.ON_REQUEST)
        sent = [beta.sends_voice(OGG + bytes([number]), to=office) for number in range(5)]
        bot.waits_until_idle()
        assert bot.jobs() == []
        alpha.says("/text", to=office, replying=sent[2])
        (job,) = bot.waits_for_jobs(1)
        assert job.tg_reply_message_id == sent[2].id
        alpha.says("/text", to=office, replying=sent[2])
        alpha.sends_voice(OGG, to=office, caption="/text")
        bot.waits_for_jobs(2)

    def test_ct16_off_is_off(self, telegram: Telegram, bot: Front) -> None:
        alpha = telegram.person("Alpha")
        office = telegram.group("Office", alpha)
        office.adds_bot(alpha, is_admin=True)
        bot.waits_until_idle()
        bot.chats.set_mode(office.id, Mode.OFF)
        sent = alpha.sends_voice(OGG, to=office)
        alpha.says("/text", to=office, replying=sent)
        telegram.waits_for(lambda: office.answers_to(sent), "an answer")
        assert bot.jobs() == []

    def test_ct16_admins_choose_the_mode_and_nobody_else(
        self, telegram: Telegram, bot: Front
    ) -> None:
        alpha, beta = telegram.person("Alpha"), telegram.person("Beta")
        office = telegram.group("Office", alpha, beta)
        office.adds_bot(alpha, is_admin=True)
        beta.says("/mode off", to=office)
        bot.waits_until_idle()
        assert bot.chats.get(office.id).mode is Mode.ALL
        assert "administrators" in office.texts[-1]
        beta.says("/mode", to=office)
        bot.waits_until_idle()
        telegram.waits_for(lambda: office.from_bot[-1].buttons, "buttons")
        buttons = office.from_bot[-1]
        press = beta.presses(buttons, "none")
        telegram.waits_for(lambda: press.answer is not None, "an answer")
        assert bot.chats.get(office.id).mode is Mode.ALL
        press = alpha.presses(buttons, "those answered with /text")
        telegram.waits_for(lambda: press.answer is not None, "an answer")
        assert bot.chats.get(office.id).mode is Mode.ON_REQUEST

    def test_a_new_group_begins_as_the_settings_say(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        with front(data_dir, telegram, TELEGRAM__GROUP_MODE="on_request") as bot:
            alpha = telegram.person("Alpha")
            office = telegram.group("Office", alpha)
            office.adds_bot(alpha, is_admin=True)
            alpha.sends_voice(OGG, to=office)
            alpha.sends_voice(OGG)
            (job,) = bot.waits_for_jobs(1)
            assert job.tg_chat_id == alpha.id


class TestGroups:
    def test_ct15_a_bot_that_sees_nothing_says_what_to_switch(
        self, telegram: Telegram, bot: Front
    ) -> None:
        alpha = telegram.person("Alpha", language="ru")
        office = telegram.group("Office", alpha)
        office.adds_bot(alpha)
        telegram.waits_for(lambda: len(office.texts) == 2, "greeting and hint")
        assert "@BotFather" in office.texts[1]
        office.promotes_bot(alpha)
        bot.waits_until_idle()
        assert len(office.texts) == 2

    def test_ct15_a_bot_that_sees_all_gives_no_hint(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        telegram.network.sees_all = True
        with front(data_dir, telegram) as bot:
            alpha = telegram.person("Alpha")
            office = telegram.group("Office", alpha)
            office.adds_bot(alpha)
            telegram.waits_for(lambda: office.texts, "a greeting")
            bot.waits_until_idle()
            assert len(office.texts) == 1

    def test_a_group_that_moves_keeps_what_was_chosen(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        with front(data_dir, telegram, TELEGRAM__ALLOW="") as bot:
            alpha = telegram.person("Alpha")
            office = telegram.group("Office", alpha, is_super=False)
            office.adds_bot(alpha, is_admin=True)
            bot.waits_until_idle()
            bot.chats.set_access(office.id, Access.ALLOWED)
            moved = office.becomes_supergroup(alpha)
            alpha.sends_voice(OGG, to=moved)
            (job,) = bot.waits_for_jobs(1)
            assert job.tg_chat_id == moved.id
            assert bot.chats.address(office.id) == moved.id

    def test_a_chat_that_the_bot_left_is_known_as_such(
        self, telegram: Telegram, bot: Front
    ) -> None:
        alpha = telegram.person("Alpha")
        office = telegram.group("Office", alpha)
        office.adds_bot(alpha)
        office.kicks_bot(alpha)
        alpha.starts()
        alpha.blocks_bot()
        bot.waits_until_idle()
        assert not bot.chats.get(office.id).is_member
        assert not bot.chats.get(alpha.id).is_member
        alpha.unblocks_bot()
        bot.waits_until_idle()
        assert bot.chats.get(alpha.id).is_member


class TestCommands:
    def test_start_and_help_in_the_persons_language(self, telegram: Telegram, bot: Front) -> None:
        alpha, john = (
            telegram.person("Alpha", language="ru"),
            telegram.person("John", language="de"),
        )
        alpha.starts()
        john.starts()
        john.says("/help")
        telegram.waits_for(lambda: len(john.chat.texts) == 2 and alpha.chat.texts, "answers")
        assert alpha.chat.texts[0].startswith("Пришлите")
        assert john.chat.texts[0].startswith("Send me")
        assert "20 MB" in john.chat.texts[1] and "6 hours" in john.chat.texts[1]

    def test_the_menu_is_set_in_both_languages(self, telegram: Telegram, bot: Front) -> None:
        telegram.waits_for(lambda: len(telegram.commands) == 3, "three menus")
        words = {item["command"] for menu in telegram.commands.values() for item in menu}
        assert words == {"help", "status", "cancel", "text", "lang", "mode"}

    def test_lang_by_word_and_by_button(self, telegram: Telegram, bot: Front) -> None:
        alpha = telegram.person("Alpha")
        alpha.says("/lang ru")
        telegram.waits_for(lambda: alpha.chat.texts, "an answer")
        assert alpha.chat.texts == ["Теперь я отвечаю по-русски."]
        alpha.says("/lang")
        telegram.waits_for(lambda: len(alpha.chat.texts) == 2, "buttons")
        press = alpha.presses(alpha.chat.from_bot[-1], "English")
        telegram.waits_for(lambda: press.answer, "an answer")
        assert press.answer == "I answer in English from now on."
        assert bot.chats.get(alpha.id).language == "en"

    def test_status_names_what_is_at_work(self, telegram: Telegram, bot: Front) -> None:
        alpha = telegram.person("Alpha")
        alpha.says("/status")
        alpha.sends_audio(OGG, "talk.mp3")
        alpha.says("/status")
        telegram.waits_for(lambda: len(alpha.chat.texts) == 2, "two answers")
        assert alpha.chat.texts[0] == "Nothing is at work for this chat."
        assert alpha.chat.texts[1].startswith("talk.mp3: ")

    def test_p48_cancel_stops_the_newest_or_the_one_replied_to(
        self, telegram: Telegram, bot: Front
    ) -> None:
        alpha = telegram.person("Alpha")
        sent = [alpha.sends_voice(OGG + bytes([number])) for number in range(3)]
        alpha.says("/cancel", replying=sent[0])
        alpha.says("/cancel")
        bot.waits_until_idle()
        ends = [(job.state, job.error_code) for job in bot.jobs()]
        assert ends == [
            (State.FAILED, "cancelled"),
            (State.CREATED, None),
            (State.FAILED, "cancelled"),
        ]
        alpha.says("/cancel", replying=sent[0])
        telegram.waits_for(lambda: alpha.chat.texts, "an answer")
        assert alpha.chat.texts == ["There is nothing to cancel here."]

    def test_in_a_group_cancel_stops_ones_own(self, telegram: Telegram, bot: Front) -> None:
        alpha, beta = telegram.person("Alpha"), telegram.person("Beta")
        office = telegram.group("Office", alpha, beta)
        office.adds_bot(alpha, is_admin=True)
        beta.sends_voice(OGG, to=office)
        alpha.sends_voice(OGG, to=office)
        beta.says("/cancel", to=office)
        bot.waits_until_idle()
        assert [job.state for job in bot.jobs()] == [State.FAILED, State.CREATED]

    def test_other_messages_get_one_hint(self, telegram: Telegram, bot: Front) -> None:
        alpha = telegram.person("Alpha")
        alpha.sends_photo()
        alpha.says("hello")
        alpha.says("/nonsense")
        bot.waits_until_idle()
        telegram.waits_for(lambda: len(alpha.chat.texts) == 2, "two answers")
        assert set(alpha.chat.texts) == {
            "I turn recordings into text: send me one. /help tells the rest."
        }

    def test_another_bots_command_in_a_group_is_not_answered(
        self, telegram: Telegram, bot: Front
    ) -> None:
        alpha = telegram.person("Alpha")
        office = telegram.group("Office", alpha)
        office.adds_bot(alpha, is_admin=True)
        alpha.says("/help@another_bot", to=office)
        alpha.says("hello", to=office)
        bot.waits_until_idle()
        assert len(office.texts) == 1
