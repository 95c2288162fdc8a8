"""What people tell the bot to do: commands, and buttons under its messages."""

from collections.abc import Callable, Sequence
from pathlib import PurePath

from app.chats import Chat, JobMessage, Mode
from app.errors import AppError
from app.i18n import LANGUAGES
from app.job import Job, State
from app.revival import revive
from app.telegram import words
from app.telegram.api import BotApi, Buttons
from app.telegram.desk import Desk
from app.telegram.errors import TelegramError
from app.telegram.incoming import Chatter, Command, Membership, Place, Press
from app.telegram.recordings import HANDED_OVER_BYTES, REFUSAL_PAUSE_SECONDS, Recordings
from app.transcripts import render

CHATTER_PAUSE_SECONDS = 60.0
"""Ten pictures sent at once are answered once."""

_SHOWN_AT_ONCE = 10
_ADMINS = ("administrator", "creator")


class Commands:
    """Does what it is told, by whoever may tell it; describe says how a job stands."""

    def __init__(
        self,
        desk: Desk,
        api: BotApi,
        recordings: Recordings,
        describe: Callable[[Job, str], str],
    ) -> None:
        self._desk = desk
        self._api = api
        self._recordings = recordings
        self._describe = describe
        self._by_name: dict[str, Callable[[Command], None]] = {
            "start": self._start,
            "help": self._help,
            "status": self._status,
            "cancel": self._cancel,
            "text": self._text,
            "lang": self._lang,
            "mode": self._mode,
        }

    def obey(self, command: Command) -> None:
        """Do what a command says."""
        chat = self._desk.chat(command.place)
        if not self._desk.admission.may(command.place, chat):
            self._refuse(command.place, chat)
            return
        act = self._by_name.get(command.name)
        if act:
            act(command)
        elif command.place.is_private:
            self._tell(command, words.CHATTER)

    def hint(self, chatter: Chatter) -> None:
        """Tell somebody who sends something else what the bot is for."""
        desk, chat = self._desk, self._desk.chat(chatter.place)
        if not desk.admission.may(chatter.place, chat):
            self._refuse(chatter.place, chat)
        elif desk.chats.may_refuse(chat.id, CHATTER_PAUSE_SECONDS, desk.clock()):
            desk.tell(chatter.place, words.CHATTER)

    def greet(self, membership: Membership) -> None:
        """Say what is to be known on coming into a group; note it on leaving (CT15)."""
        desk, place = self._desk, membership.place
        if not membership.is_inside:
            desk.chat(place)
            desk.chats.set_member(place.chat, False)
            return
        chat = desk.chat(place)
        # A channel's readers are not the bot's company, and a person begins with /start.
        if membership.was_inside or chat.is_private or place.is_admin:
            return
        if not desk.admission.may(place, chat):
            desk.tell(place, words.CLOSED_GROUP, places={"id": chat.id})
            return
        desk.tell(place, words.WELCOME)
        if not (desk.bot.sees_all or membership.is_admin):
            desk.tell(place, words.HIDDEN)

    def press(self, press: Press) -> None:
        """Do what a button says; whoever pressed it is always answered."""
        desk, chat = self._desk, self._desk.chat(press.place)
        verb, _, word = press.data.partition(":")
        language = desk.language(press.place, chat)
        answer = ""
        if desk.admission.may(press.place, chat):
            try:
                answer = self._pressed(press, verb, word, language)
            except AppError as error:
                if not error.permanent:
                    raise
                gone = error.code == "not_found"
                answer = words.say(language, words.GONE if gone else error.message)
        desk.voice.answer(press.callback, answer)

    def _pressed(self, press: Press, verb: str, word: str, language: str) -> str:
        if verb == "lang":
            return self._set_language(press.place, word, language)
        if verb == "mode":
            return self._set_mode(press.place, word, language)
        job = self._desk.queue.get(word)
        if self._desk.chats.address(job.tg_chat_id or 0) != press.place.chat:
            raise AppError("not_found")
        if verb in ("srt", "txt"):
            return self._send_form(press.place, job, verb, language)
        if verb == "retry":
            return self._retry(job, language)
        if verb == "cancel":
            return self._stop(job, language)
        return ""

    def _send_form(self, place: Place, job: Job, form: str, language: str) -> str:
        text = self._desk.queue.transcript(job.id) if job.state is State.DONE else None
        if text is None:
            return words.say(language, words.NO_TEXT)
        name = f"{PurePath(job.display_name).stem or job.id}.{form}"
        self._desk.voice.send_file(
            place.chat,
            name,
            render(text, form).encode() or b"\n",
            thread=place.thread,
            reply_to=job.tg_reply_message_id,
        )
        return ""

    def _retry(self, job: Job, language: str) -> str:
        desk = self._desk
        try:
            revive(desk.queue, desk.storage, job.id, desk.clock())
        except AppError as error:
            # Pressed twice: it is at work, and that is what was wanted.
            if error.code != "wrong_state" or not desk.queue.get(job.id).state.is_active:
                raise
        desk.messages.reopen(job.id, desk.clock())
        return words.say(language, words.AT_WORK_AGAIN)

    def _stop(self, job: Job, language: str) -> str:
        try:
            self._desk.queue.cancel(job.id, self._desk.clock())
        except AppError as error:
            if error.code != "wrong_state":
                raise
            return words.say(language, words.IS_OVER)
        return words.say(language, words.CANCELLED)

    def _start(self, command: Command) -> None:
        self._tell(command, words.START)

    def _help(self, command: Command) -> None:
        desk = self._desk
        language = desk.language(command.place, desk.chat(command.place))
        places = {"length": words.lasting(language, desk.settings.intake.max_duration)}
        if desk.settings.telegram.local:
            sentence = words.LIMITS
        else:
            sentence = words.LIMITS_LINK if desk.settings.server.public_url else words.LIMITS_SIZE
            places["size"] = words.file_size(language, HANDED_OVER_BYTES)
        self._tell(command, words.HELP, limits=words.say(language, sentence, **places))

    def _status(self, command: Command) -> None:
        desk = self._desk
        language = desk.language(command.place, desk.chat(command.place))
        lines = []
        for job in self._own_jobs(command):
            lines.append(f"{job.display_name}: {self._describe(job, language)}")
        if lines:
            desk.voice.say(
                command.place.chat,
                "\n".join(lines),
                thread=command.place.thread,
                reply_to=command.message,
            )
        else:
            self._tell(command, words.NOTHING_RUNNING)

    def _cancel(self, command: Command) -> None:
        desk = self._desk
        for job in self._meant(command):
            try:
                desk.queue.cancel(job.id, desk.clock())
            except AppError as error:
                if error.code not in ("wrong_state", "not_found"):
                    raise
            else:
                # The reply that the job owes says so.
                return
        self._tell(command, words.NOTHING_TO_CANCEL)

    def _text(self, command: Command) -> None:
        if command.replied:
            self._recordings.take_asked(command.replied)
        else:
            self._tell(command, words.REPLY_TO_ONE)

    def _lang(self, command: Command) -> None:
        if command.argument in LANGUAGES:
            language = self._desk.language(command.place, self._desk.chat(command.place))
            said = self._set_language(command.place, command.argument, language)
            self._say(command, said)
            return
        row = [(name, f"lang:{code}") for code, name in LANGUAGES.items()]
        self._tell(command, words.CHOOSE_LANGUAGE, buttons=[row])

    def _mode(self, command: Command) -> None:
        desk, chat = self._desk, self._desk.chat(command.place)
        language = desk.language(command.place, chat)
        if command.argument in set(Mode):
            self._say(command, self._set_mode(command.place, command.argument, language))
            return
        rows: Buttons = [
            [(words.say(language, words.MODES[mode]), f"mode:{mode}")] for mode in Mode
        ]
        mode = words.say(language, words.MODES[chat.mode])
        self._tell(command, words.CHOOSE_MODE, buttons=rows, mode=mode)

    def _set_language(self, place: Place, code: str, language: str) -> str:
        if code not in LANGUAGES:
            return ""
        if not self._is_admin(place):
            return words.say(language, words.ADMINS_ONLY)
        self._desk.chats.set_language(place.chat, code)
        return words.say(code, words.LANGUAGE_SET)

    def _set_mode(self, place: Place, word: str, language: str) -> str:
        if word not in set(Mode):
            return ""
        if not self._is_admin(place):
            return words.say(language, words.ADMINS_ONLY)
        self._desk.chats.set_mode(place.chat, Mode(word))
        return words.say(language, words.MODE_SET, mode=words.say(language, words.MODES[word]))

    def _is_admin(self, place: Place) -> bool:
        if place.is_private or place.is_admin:
            return True
        if place.person is None:
            return False
        try:
            return self._api.member(place.chat, place.person.id) in _ADMINS
        except TelegramError:
            return False

    def _meant(self, command: Command) -> Sequence[Job]:
        """The jobs that a command is about: those replied to, else the newest of one's own."""
        desk, place = self._desk, command.place
        if command.replied_to is None:
            return self._own_jobs(command)
        at = desk.messages.at(desk.bot.id, place.chat, command.replied_to)
        found = [at] if at else desk.messages.by_status(desk.bot.id, place.chat, command.replied_to)
        jobs = [desk.queue.find(item.job) for item in found]
        return [job for job in jobs if job]

    def _own_jobs(self, command: Command) -> Sequence[Job]:
        """What a chat waits for, the newest first; in a group only what this person sent."""
        desk, place = self._desk, command.place
        found = []
        for job_id in desk.messages.active_jobs(place.chat, 5 * _SHOWN_AT_ONCE):
            job, message = desk.queue.find(job_id), desk.messages.of_job(job_id)
            if job and (place.is_private or _is_of(message, place)):
                found.append(job)
        return found[:_SHOWN_AT_ONCE]

    def _refuse(self, place: Place, chat: Chat) -> None:
        if self._desk.chats.may_refuse(chat.id, REFUSAL_PAUSE_SECONDS, self._desk.clock()):
            sentence = words.CLOSED if chat.is_private else words.CLOSED_GROUP
            self._desk.tell(place, sentence, places={"id": chat.id})

    def _tell(
        self, command: Command, sentence: str, *, buttons: Buttons = (), **places: str
    ) -> None:
        reply_to = None if command.place.is_private else command.message
        self._desk.tell(command.place, sentence, reply_to=reply_to, buttons=buttons, places=places)

    def _say(self, command: Command, text: str) -> None:
        place = command.place
        reply_to = None if place.is_private else command.message
        self._desk.voice.say(place.chat, text, thread=place.thread, reply_to=reply_to)


def _is_of(message: JobMessage | None, place: Place) -> bool:
    if message is None or place.is_admin:
        return True
    return place.person is not None and message.person == place.person.id
