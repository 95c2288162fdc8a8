"""A Bot API server on loopback that behaves as the original does, driven as people drive Telegram.

Its errors, limits and texts are those of the original's own code
(github.com/tdlib/telegram-bot-api) and of what its users report. A method that it lacks is
answered as an unknown one: 404.

    with Telegram() as telegram:                # telegram.token, telegram.api_url for the settings
        alpha = telegram.person("Alpha", language="ru")
        alpha.starts()
        sent = alpha.sends_voice(Path("speech.ogg"), caption="…")
        telegram.waits_for(lambda: alpha.chat.answers_to(sent), "the text as a reply")
        assert alpha.chat.texts == ["…"]         # what the chat shows of the bot's now, in order
        alpha.presses(alpha.chat.from_bot[-1], "srt")

People: `says`, `sends_voice`, `sends_audio`, `sends_video`, `sends_video_note`, `sends_document`,
`sends_photo`, `sends_animation`, `sends_album`, `sends` (any content), each with `to=`,
`replying=`, `topic=`, `forwarded_from=`, `caption=`; `size=` is what Telegram says of a file
whatever it holds. `edits`, `deletes`, `presses` (gives a Press: what the bot answered), `starts`,
`blocks_bot`, `unblocks_bot`, `deletes_account`. Files are a Path or bytes.

Chats: `telegram.group(title, *people, is_super=, is_forum=)` and `telegram.channel(title)`; both
`adds_bot(by, is_admin=)`, `promotes_bot`, `demotes_bot`, `kicks_bot`, and send by themselves: the
group as an anonymous administrator, the channel its posts. Groups: `joins`, `opens_topic`,
`closes_topic`, `deletes_topic`, `mutes("text messages")`, `becomes_supergroup`,
`is_deleted_by_owner`. A bot sees in a group only what privacy mode leaves, until it is promoted
or `telegram.network.sees_all = True`. A channel tells nothing to a bot that is not in it.

What is seen: `chat.shown`, `chat.from_bot`, `chat.texts`, `chat.answers_to(message)`,
`chat.actions`, `chat.deleted`; of a message `text`, `buttons`, `reply_to`, `thread`, `file_name`,
`data` (what the bot uploaded) and `was` (the texts that edits replaced).

What was asked: `telegram.journal.calls("sendMessage")`, `.done(…)`, `.refusals()`, `.impatient()`
(what came while a 429 asked to wait). `telegram.commands` holds what setMyCommands set.

Faults, by method ("*", "getUpdates", "file" for downloads) and count (times=None: until called
off): `telegram.faults.silence`, `.reset`, `.page(status=502)`, `.garbage(body=)`,
`.cut_off(at=)`, `.drip(seconds_a_byte=)`, `.flood(retry_after=)`, `.refuse(403, "Forbidden: …")`;
`after=True` carries the request out and loses its answer; `arguments={"chat_id": "7"}` picks.
`gate = faults.hold("sendMessage")` stops a request until `gate.let_go()`: the moment to kill a
client. `goes_down()`, `comes_up()`: no server at all. `telegram.is_revoked = True`: 401.

Limits: `telegram.limits.is_on = True` for one message a second to a chat, twenty a minute to a
group, thirty a second in all. Time: `telegram.clock.passes(hours=25)` lets updates, links and
buttons age.

Updates: kept a day, handed out until confirmed, 409 for a second poller or beside a webhook.
`telegram.tells({"message": …})` sends one of any shape, `telegram.tells_again(message)` the same
message anew, `telegram.network.updates.renumber(1)` begins their numbers anew. To have the same
updates come twice: `faults.reset("getUpdates", after=True)`, or
`telegram.webhook.repeat(update)`.

A server of one's own: `Telegram(is_local=True)`. By hand: `python -m tests.telegram.double`.
"""

from tests.telegram.double.telegram import TOKEN, Telegram

__all__ = ["TOKEN", "Telegram"]
